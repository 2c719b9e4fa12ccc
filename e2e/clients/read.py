"""Asks a provider some times with its own client and prints what the client understood.

    read.py anthropic|chat|responses|gemini BASE_URL TIMES

A line of JSON each time: the message in the words that all four share, or the error that the
client raised. The client's own helper puts the message together wherever it has one.
"""

import base64
import json
import sys

KEY = "a-key"
QUESTION = "Which tents are there?"
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}}


class ResponseFailed(Exception):
    """The response ended with `response.failed`, which the client hands on as an event."""


class ErrorEvent(Exception):
    """The stream had an event `error`, which the client hands on as an event."""


def message(id, text, thinking, sealed, calls, stop, usage):
    names = ("input", "cached", "cache_write", "output", "reasoning")
    return {
        "id": id,
        "text": text,
        "thinking": thinking,
        "sealed": sealed,
        "calls": calls,
        "stop": stop,
        "usage": dict(zip(names, usage)),
    }


def anthropic(base_url):
    from anthropic import Anthropic

    client = Anthropic(api_key=KEY, base_url=base_url, max_retries=0)
    with client.messages.stream(
        model="claude-fake",
        max_tokens=1000,
        messages=[{"role": "user", "content": QUESTION}],
        tools=[{"name": "weather", "input_schema": WEATHER}],
    ) as stream:
        final = stream.get_final_message()
    by_kind = lambda kind: [block for block in final.content if block.type == kind]
    usage = final.usage
    cached = usage.cache_read_input_tokens or 0
    written = usage.cache_creation_input_tokens or 0
    details = usage.output_tokens_details
    return message(
        final.id,
        "".join(block.text for block in by_kind("text")),
        [[block.thinking, block.signature] for block in by_kind("thinking")],
        [block.data for block in by_kind("redacted_thinking")],
        [[block.id, block.name, block.input] for block in by_kind("tool_use")],
        final.stop_reason,
        (
            usage.input_tokens + cached + written,
            cached,
            written,
            usage.output_tokens,
            details.thinking_tokens if details else 0,
        ),
    )


def chat(base_url):
    from openai import OpenAI

    client = OpenAI(api_key=KEY, base_url=base_url + "/v1", max_retries=0)
    function = {"name": "weather", "parameters": WEATHER}
    with client.chat.completions.stream(
        model="gpt-fake",
        messages=[{"role": "user", "content": QUESTION}],
        tools=[{"type": "function", "function": function}],
        stream_options={"include_usage": True},
    ) as stream:
        final = stream.get_final_completion()
    choice, usage = final.choices[0], final.usage
    calls = choice.message.tool_calls or []
    return message(
        final.id,
        choice.message.content or "",
        [],
        [],
        [[c.id, c.function.name, json.loads(c.function.arguments)] for c in calls],
        choice.finish_reason,
        (
            usage.prompt_tokens,
            usage.prompt_tokens_details.cached_tokens,
            usage.prompt_tokens_details.cache_write_tokens,
            usage.completion_tokens,
            usage.completion_tokens_details.reasoning_tokens,
        ),
    )


def responses(base_url):
    from openai import OpenAI

    client = OpenAI(api_key=KEY, base_url=base_url + "/v1", max_retries=0)
    with client.responses.stream(
        model="gpt-fake",
        input=QUESTION,
        include=["reasoning.encrypted_content"],
        tools=[{"type": "function", "name": "weather", "parameters": WEATHER, "strict": False}],
    ) as stream:
        # The events are as much the client's understanding as the last response is: read them too.
        spoken, done, final = "", [], None
        for event in stream:
            if event.type == "response.output_text.delta":
                spoken += event.delta
            elif event.type == "response.output_item.done":
                done.append(event.item.id)
            elif event.type == "response.incomplete":
                final = event.response
            elif event.type == "response.failed":
                raise ResponseFailed(event.response.error.message)
            elif event.type == "error":
                raise ErrorEvent(event.message)
        final = final or stream.get_final_response()
    assert spoken == final.output_text, (spoken, final.output_text)
    assert sorted(done) == sorted(item.id for item in final.output), (done, final.output)
    thinking, sealed, calls = [], [], []
    for item in final.output:
        if item.type == "function_call":
            calls.append([item.call_id, item.name, json.loads(item.arguments)])
        elif item.type == "reasoning" and item.summary:
            text = "".join(part.text for part in item.summary)
            thinking.append([text, item.encrypted_content])
        elif item.type == "reasoning":
            sealed.append(item.encrypted_content)
    usage = final.usage
    return message(
        final.id,
        final.output_text,
        thinking,
        sealed,
        calls,
        final.status,
        (
            usage.input_tokens,
            usage.input_tokens_details.cached_tokens,
            usage.input_tokens_details.cache_write_tokens,
            usage.output_tokens,
            usage.output_tokens_details.reasoning_tokens,
        ),
    )


def gemini(base_url):
    from google import genai
    from google.genai import types

    declared = types.FunctionDeclaration(name="weather", parameters_json_schema=WEATHER)
    options = types.HttpOptions(base_url=base_url)
    client = genai.Client(api_key=KEY, http_options=options)
    stream = client.models.generate_content_stream(
        model="gemini-fake",
        contents=QUESTION,
        config=types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=[declared])],
            thinking_config=types.ThinkingConfig(include_thoughts=True),
        ),
    )
    signed = lambda part: base64.b64encode(part.thought_signature).decode()
    text, thinking, sealed, calls, stop, last = "", [], [], [], None, None
    for last in stream:
        for candidate in last.candidates or []:
            stop = candidate.finish_reason or stop
            for part in candidate.content.parts:
                if part.function_call:
                    call = part.function_call
                    calls.append([call.id, call.name, call.args])
                    if part.thought_signature:
                        calls[-1].append(signed(part))
                elif part.thought:
                    if not thinking:
                        thinking.append(["", None])
                    thinking[0][0] += part.text
                    if part.thought_signature:
                        thinking[0][1] = signed(part)
                elif part.thought_signature:
                    sealed.append(signed(part))
                else:
                    text += part.text
    usage = last.usage_metadata
    thoughts = usage.thoughts_token_count or 0
    return message(
        last.response_id,
        text,
        thinking,
        sealed,
        calls,
        stop.value if stop else None,
        (
            usage.prompt_token_count,
            usage.cached_content_token_count or 0,
            0,
            (usage.candidates_token_count or 0) + thoughts,
            thoughts,
        ),
    )


def failure(why):
    status = getattr(why, "status_code", None) or getattr(why, "code", None)
    headers = getattr(getattr(why, "response", None), "headers", None) or {}
    return {
        "error": type(why).__name__,
        "status": status if isinstance(status, int) else None,
        "retry_after": headers.get("retry-after"),
        "retry_after_ms": headers.get("retry-after-ms"),
        "message": str(why),
    }


def main():
    readers = {"anthropic": anthropic, "chat": chat, "responses": responses, "gemini": gemini}
    _, dialect, base_url, times = sys.argv
    for _ in range(int(times)):
        try:
            read = readers[dialect](base_url)
        except Exception as why:
            read = failure(why)
        print(json.dumps(read, ensure_ascii=False))


main()
