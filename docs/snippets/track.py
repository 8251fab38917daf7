# Save as track.py, then: python3 track.py
import http.client, json, os, secrets, sys, time, urllib.error, urllib.request, uuid

API = "{{.Address}}/v1"


def post(path, body):
    headers = {"Authorization": f"Bearer {os.environ['PURSER_KEY']}", "Content-Type": "application/json"}
    request = urllib.request.Request(API + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)


def new_id():
    """A UUIDv7: ids that sort by time are stored cheaply."""
    value = time.time_ns() // 1_000_000 << 80 | 7 << 76 | secrets.randbits(12) << 64 | 2 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=value))


def track(use):
    """Sends the use until there is an answer. With the same id it is charged once."""
    for attempt in range(6):
        try:
            status, answer = post("/events", use)
            if status != 429 and status < 500:
                return answer
        except (OSError, http.client.HTTPException):
            pass  # no answer: whether it was charged is unknown, so ask again
        time.sleep(0.2 * 2**attempt)
    raise RuntimeError(f"no answer for {use['id']}: keep the id and try again later")


use = {"identity": "{{.Identity}}", "feature": "{{.Feature}}"}
_, check = post("/check", use)
if not check.get("allowed"):
    sys.exit(f"not allowed: {check}")

# Do the work here, then say that it happened.
charge = track({"id": new_id(), **use})
if "error" in charge:
    sys.exit(f"{charge['error']}: {charge['message']}")
print(charge["status"], charge["amountNanocredits"], charge["transactionId"])
