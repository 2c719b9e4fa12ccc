"""A LangGraph agent behind Turnwire: it finds the shops of a city and says when they are open.

Turnwire posts each turn to /turns and reads the answer as server-sent events.
"""

import asyncio
import json
import logging
import os
import uuid
from typing import TypedDict

import uvicorn
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

log = logging.getLogger("uvicorn.error")

SHOPS = {
    "graz": [
        {"id": "graz-1", "title": "Jakominiplatz", "hours": "8 to 19"},
        {"id": "graz-2", "title": "Lendplatz", "hours": "7 to 18"},
    ],
    "linz": [{"id": "linz-1", "title": "Hauptplatz", "hours": "9 to 18"}],
}


class State(TypedDict, total=False):
    question: str
    city: str
    shops: list[dict]


async def find_shops(state: State) -> State:
    """Looks for the shops, and shows them as a list."""
    write = get_stream_writer()
    call = f"call_{uuid.uuid4().hex}"
    tool = {"id": call, "name": "render_shop_list"}
    write({"type": "tool_call_start", **tool})
    # A status is an id. Its text, in the user's language, is in pack/locales.
    write({"event_type": "looking_for_shops", "tool_id": call})
    await asyncio.sleep(0.2)  # Here you would ask a database.
    city = next((city for city in SHOPS if city in state["question"].lower()), "")
    shops = SHOPS.get(city, [])
    # The result of a tool render_* is shown to the user.
    write({"type": "tool_result", "id": call, "content": {"items": shops}})
    write({"type": "tool_call_end", **tool})
    return {"city": city, "shops": shops}


async def answer(state: State) -> State:
    """Says what was found, word by word, as a model would."""
    write = get_stream_writer()
    if state["shops"]:
        hours = ", ".join(f"{shop['title']} from {shop['hours']}" for shop in state["shops"])
        text = f"In {state['city'].title()} these are open: {hours}."
    else:
        text = "We have shops in Graz and in Linz. Which city do you mean?"
    for word in text.split(" "):
        write({"type": "text", "content": word + " "})
        await asyncio.sleep(0.05)
    return {}


builder = StateGraph(State)
builder.add_node("find_shops", find_shops)
builder.add_node("answer", answer)
builder.add_edge(START, "find_shops")
builder.add_edge("find_shops", "answer")
builder.add_edge("answer", END)
graph = builder.compile()


def sse(event: dict) -> str:
    return f"data: {json.dumps(event)}\n\n"


async def stream(turn: dict):
    """The events of a turn: its id first, then what the nodes write, then its end."""
    yield sse({"type": "response_id", "response_id": f"run-{uuid.uuid4().hex}"})
    texts = [block["text"] for block in turn["content"] if block["type"] == "text"]
    try:
        question = {"question": " ".join(texts)}
        async for event in graph.astream(question, stream_mode="custom"):
            yield sse(event)
    except asyncio.CancelledError:
        # The user pressed stop: Turnwire closed the connection, and the graph ends where it is.
        log.info("stopped turn %s", turn["turn_id"])
        raise
    except Exception:
        log.exception("turn %s failed", turn["turn_id"])
        yield sse({"type": "error", "error": {"code": "INTERNAL_ERROR"}})
    else:
        yield sse({"type": "completed"})


async def turns(request: Request) -> StreamingResponse:
    return StreamingResponse(stream(await request.json()), media_type="text/event-stream")


app = Starlette(routes=[Route("/turns", turns, methods=["POST"])])

if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "9000")), log_level="info")
