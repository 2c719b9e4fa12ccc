// Asks a provider some times with its own client and prints what the client understood.
//
//     node read.mjs anthropic|chat|responses|gemini BASE_URL TIMES
//
// A line of JSON each time, in the same words as read.py's.

const KEY = 'a-key';
const QUESTION = 'Which tents are there?';
const WEATHER = { type: 'object', properties: { city: { type: 'string' } } };

// The response ended with `response.failed`, which the client hands on as a response.
class ResponseFailed extends Error {}

function message(id, text, thinking, sealed, calls, stop, usage) {
  const [input, cached, cache_write, output, reasoning] = usage;
  return { id, text, thinking, sealed, calls, stop, usage: { input, cached, cache_write, output, reasoning } };
}

async function anthropic(baseURL) {
  const { default: Anthropic } = await import('@anthropic-ai/sdk');
  const client = new Anthropic({ apiKey: KEY, baseURL, maxRetries: 0 });
  const stream = client.messages.stream({
    model: 'claude-fake',
    max_tokens: 1000,
    messages: [{ role: 'user', content: QUESTION }],
    tools: [{ name: 'weather', input_schema: WEATHER }],
  });
  const final = await stream.finalMessage();
  const byKind = (kind) => final.content.filter((block) => block.type === kind);
  const usage = final.usage;
  const cached = usage.cache_read_input_tokens ?? 0;
  const written = usage.cache_creation_input_tokens ?? 0;
  return message(
    final.id,
    byKind('text').map((block) => block.text).join(''),
    byKind('thinking').map((block) => [block.thinking, block.signature]),
    byKind('redacted_thinking').map((block) => block.data),
    byKind('tool_use').map((block) => [block.id, block.name, block.input]),
    final.stop_reason,
    [
      usage.input_tokens + cached + written,
      cached,
      written,
      usage.output_tokens,
      usage.output_tokens_details?.thinking_tokens ?? 0,
    ],
  );
}

async function chat(baseURL) {
  const { default: OpenAI } = await import('openai');
  const client = new OpenAI({ apiKey: KEY, baseURL: `${baseURL}/v1`, maxRetries: 0 });
  const stream = client.chat.completions.stream({
    model: 'gpt-fake',
    messages: [{ role: 'user', content: QUESTION }],
    tools: [{ type: 'function', function: { name: 'weather', parameters: WEATHER } }],
    stream_options: { include_usage: true },
  });
  const final = await stream.finalChatCompletion();
  const [choice] = final.choices;
  const usage = final.usage;
  const calls = choice.message.tool_calls ?? [];
  return message(
    final.id,
    choice.message.content ?? '',
    [],
    [],
    calls.map((call) => [call.id, call.function.name, JSON.parse(call.function.arguments)]),
    choice.finish_reason,
    [
      usage.prompt_tokens,
      usage.prompt_tokens_details.cached_tokens,
      usage.prompt_tokens_details.cache_write_tokens,
      usage.completion_tokens,
      usage.completion_tokens_details.reasoning_tokens,
    ],
  );
}

async function responses(baseURL) {
  const { default: OpenAI } = await import('openai');
  const client = new OpenAI({ apiKey: KEY, baseURL: `${baseURL}/v1`, maxRetries: 0 });
  const stream = client.responses.stream({
    model: 'gpt-fake',
    input: QUESTION,
    include: ['reasoning.encrypted_content'],
    tools: [{ type: 'function', name: 'weather', parameters: WEATHER, strict: false }],
  });
  let spoken = '';
  stream.on('response.output_text.delta', (event) => (spoken += event.delta));
  const final = await stream.finalResponse();
  if (final.status === 'failed') throw new ResponseFailed(final.error.message);
  if (spoken !== final.output_text) {
    throw new Error(`the deltas say ${spoken}, the response ${final.output_text}`);
  }
  const reasoning = final.output.filter((item) => item.type === 'reasoning');
  const usage = final.usage;
  return message(
    final.id,
    final.output_text,
    reasoning
      .filter((item) => item.summary.length > 0)
      .map((item) => [item.summary.map((part) => part.text).join(''), item.encrypted_content]),
    reasoning.filter((item) => item.summary.length === 0).map((item) => item.encrypted_content),
    final.output
      .filter((item) => item.type === 'function_call')
      .map((item) => [item.call_id, item.name, JSON.parse(item.arguments)]),
    final.status,
    [
      usage.input_tokens,
      usage.input_tokens_details.cached_tokens,
      usage.input_tokens_details.cache_write_tokens,
      usage.output_tokens,
      usage.output_tokens_details.reasoning_tokens,
    ],
  );
}

async function gemini(baseUrl) {
  const { GoogleGenAI } = await import('@google/genai');
  const client = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl } });
  const stream = await client.models.generateContentStream({
    model: 'gemini-fake',
    contents: QUESTION,
    config: {
      tools: [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: WEATHER }] }],
      thinkingConfig: { includeThoughts: true },
    },
  });
  let text = '';
  let stop = null;
  let last;
  const [thinking, sealed, calls] = [[], [], []];
  for await (last of stream) {
    for (const candidate of last.candidates ?? []) {
      stop = candidate.finishReason ?? stop;
      for (const part of candidate.content.parts) {
        const signature = part.thoughtSignature;
        if (part.functionCall) {
          const { id, name, args } = part.functionCall;
          calls.push([id ?? null, name, args, ...(signature ? [signature] : [])]);
        } else if (part.thought) {
          if (thinking.length === 0) thinking.push(['', null]);
          thinking[0][0] += part.text;
          if (signature) thinking[0][1] = signature;
        } else if (signature) {
          sealed.push(signature);
        } else {
          text += part.text;
        }
      }
    }
  }
  const usage = last.usageMetadata;
  const thoughts = usage.thoughtsTokenCount ?? 0;
  return message(last.responseId, text, thinking, sealed, calls, stop, [
    usage.promptTokenCount,
    usage.cachedContentTokenCount ?? 0,
    0,
    (usage.candidatesTokenCount ?? 0) + thoughts,
    thoughts,
  ]);
}

function failure(why) {
  const header = (name) => why.headers?.get?.(name) ?? null;
  return {
    // The client throws an event `error` as it came, and not as an Error.
    error: why.type === 'error' && why.constructor === Object ? 'ErrorEvent' : why.constructor.name,
    status: typeof why.status === 'number' ? why.status : null,
    retry_after: header('retry-after'),
    retry_after_ms: header('retry-after-ms'),
    message: String(why.message),
  };
}

const readers = { anthropic, chat, responses, gemini };
const [dialect, baseUrl, times] = process.argv.slice(2);
for (let time = 0; time < Number(times); time += 1) {
  const read = await readers[dialect](baseUrl).catch(failure);
  console.log(JSON.stringify(read));
}
