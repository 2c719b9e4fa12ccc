"""A check for schemathesis beside its own: every refusal is a problem (RFC 9457) that a program can read."""

import schemathesis

# Answered by the HTTP library before a request is one: a head that is too large, or that is no HTTP.
WITHOUT_BODY = {400, 431}


@schemathesis.check
def refusals_are_problems(ctx, response, case):
    status = response.status_code
    if status < 400:
        return
    kind = (response.headers.get("content-type") or [""])[0]
    if status in WITHOUT_BODY and not response.content:
        return
    assert kind == "application/problem+json", f"{status} is {kind!r}, not a problem"
    if case.method.upper() == "HEAD":
        return
    problem = response.json()
    missing = {"type", "title", "status", "code"} - problem.keys()
    assert not missing, f"a problem without {sorted(missing)}"
    assert problem["status"] == status, f"{status} has a problem with {problem['status']}"
    assert problem["type"] == f"/problems/{problem['code']}", problem["type"]
