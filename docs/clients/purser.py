"""A client for Purser. Needs Python 3.9 or later and nothing else."""
import http.client, json, os, time, urllib.error, urllib.request

URL = os.environ.get("PURSER_URL", "http://127.0.0.1:8080")
KEY = os.environ["PURSER_KEY"]


class PurserError(Exception):
    """A request that Purser declined. Decide by code: it never changes."""

    def __init__(self, status, answer):
        super().__init__(f"{answer['error']}: {answer['message']}")
        self.status, self.code, self.answer = status, answer["error"], answer


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would turn a POST into a GET, and send the key to another server."""

    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(NoRedirects)


def get(path):
    return call("GET", path)


def post(path, body):
    return call("POST", path, body)


def patch(path, body):
    return call("PATCH", path, body)


def call(method, path, body=None):
    """Sends a request until Purser responds. A POST without an id, an idempotency key or
    events may have been carried out when its response is lost: it is only repeated after 429."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    repeatable = method != "POST" or path in ("/v1/check", "/v1/explain") or not {"id", "idempotencyKey", "events"}.isdisjoint(body or {})
    for attempt in range(6):
        request = urllib.request.Request(URL + path, data, headers, method=method)
        status, wait = 0, 0
        try:
            try:
                with opener.open(request, timeout=40) as response:
                    return json.load(response)
            except urllib.error.HTTPError as refusal:
                status = refusal.code
                if status != 429 and status < 500:
                    raise PurserError(status, read(refusal)) from None
                wait = float(refusal.headers.get("Retry-After") or 0)
        except (OSError, http.client.HTTPException):
            pass  # no response, or only a part of it
        if status != 429 and not repeatable:
            raise TimeoutError(f"no response from {URL}: read whether it was done before you send it again")
        time.sleep(wait or 0.2 * 2**attempt)
    raise TimeoutError(f"no response from {URL}: keep the id and try again later")


def read(refusal):
    try:
        return json.load(refusal)
    except ValueError:
        return {"error": "unexpected_response", "message": f"status {refusal.code}: is {URL} Purser's address?"}
