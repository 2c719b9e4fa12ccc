"""Reads event streams with httpx-sse, coming back with the last id until the server says 204.

A line of standard input asks for one stream: {"base": "http://…", "path": "/chat/…/stream"}.
A line of standard output tells what came: {"events": [[id, event, data], …]}.
"""

import json
import sys
import time

import httpx
from httpx_sse import EventSource


def read(url):
    """All events of a stream, however often it is cut."""
    events, last_id, retry_ms = [], "", 0
    with httpx.Client(timeout=60, trust_env=False) as client:
        while True:
            headers = {"Accept": "text/event-stream"}
            if last_id:
                headers["Last-Event-ID"] = last_id
            with client.stream("GET", url, headers=headers) as response:
                if response.status_code == 204:
                    return events
                response.raise_for_status()
                for event in EventSource(response).iter_sse():
                    events.append([event.id, event.event, event.data])
                    last_id = event.id or last_id
                    retry_ms = event.retry if event.retry is not None else retry_ms
            time.sleep(retry_ms / 1000)


def main():
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({"events": read(asked["base"] + asked["path"])}), flush=True)


main()
