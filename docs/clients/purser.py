"""A client for Purser. Needs Python 3.9 or later and nothing else."""
import json, os, time, urllib.error, urllib.request

URL = os.environ.get("PURSER_URL", "http://127.0.0.1:8080")
KEY = os.environ["PURSER_KEY"]


class PurserError(Exception):
    """A request that Purser declined. Decide by code: it never changes."""

    def __init__(self, status, answer):
        super().__init__(f"{answer['error']}: {answer['message']}")
        self.status, self.code, self.answer = status, answer["error"], answer


def get(path):
    return call("GET", path)


def post(path, body):
    return call("POST", path, body)


def patch(path, body):
    return call("PATCH", path, body)


def call(method, path, body=None):
    """Sends a request until Purser responds. It is safe to repeat: the id of an event and
    the idempotency key of a payment are in the body."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    for attempt in range(6):
        request = urllib.request.Request(URL + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return json.load(response)
        except urllib.error.HTTPError as refusal:
            if refusal.code != 429 and refusal.code < 500:
                raise PurserError(refusal.code, json.load(refusal)) from None
            wait = float(refusal.headers.get("Retry-After") or 0)
        except OSError:
            wait = 0
        time.sleep(wait or 0.2 * 2**attempt)
    raise TimeoutError(f"no response from {URL}: keep the id and try again later")
