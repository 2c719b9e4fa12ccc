"""An agent of Google's ADK behind Turnwire: it finds the shops of a city and says when they are open.

Turnwire posts each turn to /turns and reads the answer as server-sent events.
"""

import asyncio
import json
import logging
import os
import uuid
from collections.abc import AsyncIterator, Iterator

import uvicorn
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.events import Event
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
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

# What to say while a tool runs. A status is an id; its text, in the user's language, is in pack/locales.
STATUSES = {"render_shop_list": "looking_for_shops"}


async def render_shop_list(city: str) -> dict:
    """Shows the shops of a city to the user, with their opening hours."""
    await asyncio.sleep(0.2)  # Here you would ask a database.
    return {"items": SHOPS.get(city.lower(), [])}


class Script(BaseLlm):
    """Answers without a key: asks for the shops of the city, then says what was found."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        part = llm_request.contents[-1].parts[-1]
        if part.function_response is None:
            city = next((city for city in SHOPS if city in (part.text or "").lower()), "")
            call = types.FunctionCall(name="render_shop_list", args={"city": city})
            yield LlmResponse(content=content(types.Part(function_call=call)))
            return
        shops = part.function_response.response["items"]
        hours = ", ".join(f"{shop['title']} from {shop['hours']}" for shop in shops)
        text = f"These are open: {hours}." if shops else "We have shops in Graz and in Linz."
        for word in text.split(" "):
            yield LlmResponse(content=content(types.Part(text=word + " ")), partial=True)
            await asyncio.sleep(0.05)
        yield LlmResponse(content=content(types.Part(text=text)))


def content(part: types.Part) -> types.Content:
    return types.Content(role="model", parts=[part])


agent = LlmAgent(
    name="shops",
    # With a model of Gemini's and a key in GOOGLE_API_KEY this answers anything.
    model=os.environ.get("MODEL") or Script(model="script"),
    instruction="Say when the shops of a city are open. Show them with your tool.",
    tools=[render_shop_list],
)
runner = Runner(
    app_name="shops",
    agent=agent,
    session_service=InMemorySessionService(),
    auto_create_session=True,
)


def translate(event: Event, is_streamed: bool) -> Iterator[dict]:
    """What Turnwire reads of an event of ADK; is_streamed if parts of its message came before."""
    # A streamed call comes once more when it is whole.
    for call in [] if event.partial else event.get_function_calls():
        yield {"type": "tool_call_start", "id": call.id, "name": call.name}
        if call.name in STATUSES:
            yield {"event_type": STATUSES[call.name], "tool_id": call.id}
    for done in event.get_function_responses():
        # The result of a tool render_* is shown to the user.
        yield {"type": "tool_result", "id": done.id, "content": done.response}
        yield {"type": "tool_call_end", "id": done.id}
    # The last event of a streamed message repeats its parts.
    if event.content and (event.partial or not is_streamed):
        for part in event.content.parts or []:
            if part.text:
                yield {"type": "thinking" if part.thought else "text", "content": part.text}


def usage(event: Event, total: dict) -> None:
    """Adds the tokens of a model call, once per message."""
    if event.usage_metadata and not event.partial:
        total["input_tokens"] += event.usage_metadata.prompt_token_count or 0
        total["output_tokens"] += event.usage_metadata.candidates_token_count or 0


def sse(event: dict) -> str:
    return f"data: {json.dumps(event)}\n\n"


async def stream(turn: dict) -> AsyncIterator[str]:
    """The events of a turn: its id first, then what the agent does, then its end."""
    yield sse({"type": "response_id", "response_id": f"run-{uuid.uuid4().hex}"})
    parts = [types.Part(text=block["text"]) for block in turn["content"] if block["type"] == "text"]
    total = {"input_tokens": 0, "output_tokens": 0}
    is_streamed = False
    try:
        events = runner.run_async(
            user_id=turn["principal"],
            session_id=turn["session_id"],
            new_message=types.Content(role="user", parts=parts),
            run_config=RunConfig(streaming_mode=StreamingMode.SSE),
        )
        async for event in events:
            if event.error_code:
                raise RuntimeError(f"{event.error_code}: {event.error_message}")
            usage(event, total)
            for out in translate(event, is_streamed):
                yield sse(out)
            is_streamed = bool(event.partial)
    except asyncio.CancelledError:
        # The user pressed stop: Turnwire closed the connection, and the agent ends where it is.
        log.info("stopped turn %s", turn["turn_id"])
        raise
    except Exception:
        log.exception("turn %s failed", turn["turn_id"])
        yield sse({"type": "error", "error": {"code": "INTERNAL_ERROR"}})
    else:
        yield sse({"type": "usage", **total})
        yield sse({"type": "completed"})


async def turns(request: Request) -> StreamingResponse:
    return StreamingResponse(stream(await request.json()), media_type="text/event-stream")


app = Starlette(routes=[Route("/turns", turns, methods=["POST"])])

if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "9000")), log_level="info")
