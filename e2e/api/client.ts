// A client with the types that openapi-typescript made of the document: it compiles in strict mode
// only if events narrow by their type, and it talks to the server at the first argument.
import createClient from 'openapi-fetch'
import type { components, paths } from './api.js'

type Event = components['schemas']['Event']
type Turn = components['schemas']['Turn']

declare const process: { argv: string[] }

const url = process.argv[2] ?? ''
const client = createClient<paths>({ baseUrl: url })

function given<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`no ${what}`)
  return value
}

/** What a person would want to know of an event; the payload has the type of its event. */
function told(event: Event): string | null {
  switch (event.type) {
    case 'turn.completed':
      return `turn ${event.payload.status}`
    case 'turn.cancelled':
      return `turn cancelled: ${event.payload.receipt.length} lines`
    case 'component.rendered':
      return `component of ${event.payload.tool_call.name}`
    case 'data.loaded':
      return `${event.payload.items.length} items`
    case 'tool.called':
      return `tool ${event.payload.tool_name}`
    default:
      return null
  }
}

/** How a turn ended. */
function ending(turn: Turn): string {
  const terminal = given(turn.terminal, 'terminal')
  return terminal.type === 'turn.completed' ? terminal.payload.status : terminal.payload.code
}

/** A frame of the chat wire, as far as every frame has it. */
type Frame = { event_type: string; response_id: string }

/** The frames of a chat stream. */
function frames(stream: string): Frame[] {
  const data = stream.split('\n').filter((line) => line.startsWith('data: {'))
  return data.map((line) => JSON.parse(line.slice('data: '.length)) as Frame)
}

/** Streams a turn, and reads it again from its first frame. The types of the last frames. */
async function chat(message: string): Promise<string[]> {
  const streamed = await client.POST('/chat/stream', { body: { message }, parseAs: 'text' })
  const first = frames(given(streamed.data, 'stream'))
  const response_id = given(streamed.response.headers.get('x-response-id'), 'response id')
  if (first.some((frame) => frame.response_id !== response_id)) throw new Error('another turn')
  const params = { path: { response_id } }
  const resumed = await client.GET('/chat/{response_id}/stream', { params, parseAs: 'text' })
  const again = frames(given(resumed.data, 'stream'))
  return [first, again].map((read) => given(read.at(-1), 'frame').event_type)
}

const created = await client.POST('/sessions', { body: { metadata: { from: 'types' } } })
const id = given(created.data, 'session').session_id
const endings: string[] = []
for (const message of process.argv.slice(3)) {
  const params = { path: { id } }
  const submitted = await client.POST('/sessions/{id}/turns', { params, body: { message } })
  const turn = given(submitted.data, 'turn').turn_id
  // Read until it has ended; the test has a deadline.
  for (;;) {
    const read = await client.GET('/turns/{id}', { params: { path: { id: turn } } })
    const state = given(read.data, 'turn')
    if (state.terminal !== null) {
      endings.push(ending(state))
      break
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
const cancelled = await client.POST('/turns/{id}/cancel', {
  params: { path: { id: 'resp_00000000000000000000000000' }, query: { wait: true } },
})
const problem = given(cancelled.error, 'problem').code
const lines: string[] = []
let since: string | undefined
do {
  const query = since === undefined ? { hashes: true } : { hashes: true, since }
  const page = await client.GET('/sessions/{id}/events', { params: { path: { id }, query } })
  const { events, next, hashes } = given(page.data, 'page')
  if (given(hashes, 'hashes').length !== events.length) throw new Error('a hash for each event')
  lines.push(...events.map(told).filter((line) => line !== null))
  since = next ?? undefined
} while (since !== undefined)
const chats = await chat(given(process.argv[3], 'message'))
console.log(JSON.stringify({ endings, problem, lines, chats }))
