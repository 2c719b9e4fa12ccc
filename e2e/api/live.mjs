// Talks to the server at the first argument over both wires and checks every frame and every body
// against the schemas of the folder in the second: each further argument is a message. Approves
// what a turn asks for, and looks at how the server closes connections. A message after `cut:<event type>:` starts a turn that is cancelled once it has
// sent such an event: over the session wire by a client that attaches in the middle of its work, over
// the chat wire after its stream was cut and resumed. Prints how many frames of each type there were,
// and the lists of open work that snapshots had.
import fs from 'node:fs'
import path from 'node:path'
import Ajv from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import WebSocket from 'ws'

const [url, folder, ...given] = process.argv.slice(2)
const messages = given.filter((message) => !message.startsWith('cut:'))
const cuts = given
  .filter((message) => message.startsWith('cut:'))
  .map((message) => message.split(':').slice(1))
const ajv = new Ajv({ strict: true })
addFormats.default(ajv)
const read = (file) => JSON.parse(fs.readFileSync(path.join(folder, file), 'utf8'))
const schemas = new Map()
const counts = {}

function check(file, value, label) {
  if (!schemas.has(file)) schemas.set(file, ajv.compile(read(file)))
  const validate = schemas.get(file)
  if (!validate(value)) {
    throw new Error(`${file} refuses ${JSON.stringify(value)}: ${ajv.errorsText(validate.errors)}`)
  }
  count(label)
}

function count(label) {
  counts[label] = (counts[label] ?? 0) + 1
}

const { components } = read('openapi.json')
ajv.addVocabulary(['components'])
ajv.addSchema({ components }, 'openapi')
function checkBody(name, value) {
  const key = `openapi#/components/schemas/${name}`
  const validate = ajv.getSchema(key)
  if (!validate(value)) {
    throw new Error(`${name} refuses ${JSON.stringify(value)}: ${ajv.errorsText(validate.errors)}`)
  }
  count(name)
}

async function call(method, where, body) {
  const headers = { 'content-type': 'application/json' }
  const init = body === undefined ? { method } : { method, headers, body: JSON.stringify(body) }
  const response = await fetch(url + where, init)
  return response.json()
}

/** A watched session: every frame is checked, and the newest end of a turn can be awaited. */
class Watched {
  ends = new Map()
  waiting = new Map()
  replies = []
  seen = new Map()

  async open(id, subscribe) {
    const attached = await call('GET', `/sessions/${id}`)
    checkBody('SessionAttached', attached)
    this.socket = new WebSocket(attached.ws_url)
    this.socket.on('message', (data) => this.take(JSON.parse(data)))
    this.closed = new Promise((resolve) => {
      this.socket.on('close', (code, text) => {
        resolve()
        // This client went away by itself.
        if (code === 1006) return
        const reason = JSON.parse(text.toString())
        check('wires/session-close.json', { code, reason }, `close ${reason.code}`)
      })
    })
    await new Promise((resolve, reject) => {
      this.socket.on('open', resolve)
      this.socket.on('error', reject)
    })
    this.send(subscribe)
  }

  send(frame) {
    check('wires/session-client.json', frame, `client ${frame.type}`)
    this.socket.send(JSON.stringify(frame))
  }

  take(frame) {
    try {
      check('wires/session-server.json', frame, `server ${frame.type}`)
      if (frame.type === 'event') this.event(frame.event)
      if (frame.type === 'ping') this.send({ type: 'pong', nonce: frame.nonce })
      const waiter = this.replies.findIndex(([type]) => type === frame.type)
      if (waiter >= 0) this.replies.splice(waiter, 1)[0][1](frame)
    } catch (error) {
      console.error(error.message)
      process.exit(1)
    }
  }

  event(event) {
    check('event.json', event, event.type)
    checkBody('Event', event)
    this.seen.get(event.type)?.()
    if (event.type === 'turn.completed' || event.type === 'turn.cancelled') {
      count(`${event.type} ${event.payload.status ?? event.payload.code}`)
      this.ends.set(event.turn_id, event)
      this.waiting.get(event.turn_id)?.(event)
    }
  }

  reply(type) {
    return new Promise((resolve) => this.replies.push([type, resolve]))
  }

  /** The next event of a type. */
  next(type) {
    return new Promise((resolve) => this.seen.set(type, resolve))
  }

  end(turn) {
    const known = this.ends.get(turn)
    return known ?? new Promise((resolve) => this.waiting.set(turn, resolve))
  }
}

async function overSession() {
  const created = await call('POST', '/sessions', {})
  checkBody('SessionCreatedBody', created)
  const id = created.session_id
  const watched = new Watched()
  const filter = { include_worker_sessions: true, include_suppressed: true }
  const accepted = watched.reply('subscribe_ack')
  await watched.open(id, { type: 'subscribe', filter })
  await accepted
  const pong = watched.reply('pong')
  watched.send({ type: 'ping', nonce: 'n' })
  await pong
  for (const message of messages) {
    const submitted = await call('POST', `/sessions/${id}/turns`, { message })
    checkBody('TurnAccepted', submitted)
    let turn = submitted.turn_id
    let end = await watched.end(turn)
    while (end.payload.status === 'paused') {
      const asked = await call('GET', `/turns/${turn}/approvals`)
      checkBody('ApprovalList', asked)
      const open = asked.approvals.filter((one) => one.state === 'pending')
      const answers = open.map((one) => ({ approval_id: one.approval_id, decision: 'approve' }))
      const decided = await call('POST', `/turns/${turn}/approvals`, { answers })
      checkBody('ApprovalsAnswered', decided)
      turn = decided.next_turn_id
      end = await watched.end(turn)
    }
    checkBody('Turn', await call('GET', `/turns/${turn}`))
  }
  for (const [type, message] of cuts) await cutOverSession(watched, id, type, message)
  for (const [where, name] of [
    ['events?hashes=true', 'EventList'],
    ['messages', 'MessageList'],
    ['tool-calls', 'ToolCallList'],
    ['llm-calls', 'LlmCallList'],
    ['turns', 'TurnList'],
    ['workers', 'WorkerList'],
  ]) {
    checkBody(name, await call('GET', `/sessions/${id}/${where}`))
  }
  const late = new Watched()
  const snapshot = late.reply('snapshot')
  await late.open(id, { type: 'subscribe', filter: 'preset:chat', snapshot: true })
  await snapshot
  const refused = new Watched()
  const error = refused.reply('subscribe_error')
  await refused.open(id, { type: 'subscribe', since: 'evt_00090000000001' })
  await error
  refused.socket.send('no JSON')
  late.socket.send(Buffer.from('{}'), { binary: true })
  await Promise.all([refused.closed, late.closed])
  await fetch(`${url}/sessions/${id}`, { method: 'DELETE' })
  await watched.closed
}

/** A second client attaches while a turn works, and cancels it; a third takes up where it stood. */
async function cutOverSession(watched, id, type, message) {
  const started = watched.next(type)
  const { turn_id } = await call('POST', `/sessions/${id}/turns`, { message })
  await started
  const late = new Watched()
  const taken = late.reply('snapshot')
  await late.open(id, { type: 'subscribe', snapshot: true })
  const snapshot = await taken
  for (const [list, entries] of Object.entries(snapshot.open)) {
    if (entries.length > 0) count(`open ${list}`)
  }
  const answer = late.reply('cancel_ack')
  late.send({ type: 'cancel', turn_id, reason: 'r'.repeat(2_000) })
  await answer
  const { payload } = await late.end(turn_id)
  if (payload.reason !== 'r'.repeat(200)) throw new Error(`${payload.reason} is not cut`)
  await watched.end(turn_id)
  const refused = late.reply('cancel_error')
  late.send({ type: 'cancel', turn_id: 'resp_00000000000000000000000000' })
  await refused
  late.socket.terminate()
  checkBody('Turn', await call('GET', `/turns/${turn_id}`))
  const resumed = new Watched()
  await resumed.open(id, { type: 'subscribe', since: snapshot.snapshot_at_event_id })
  await resumed.end(turn_id)
  count('resumed')
  resumed.socket.terminate()
}

const DATA = 'data: '

/** Checks the frame of a block; its id, or null for a block that is no frame. */
function checkBlock(version, block) {
  const lines = block.split('\n')
  const data = lines.find((line) => line.startsWith(DATA))?.slice(DATA.length)
  if (data === undefined || data === '[DONE]') return null
  const frame = JSON.parse(data)
  check(`wires/pc3-${version}.json`, frame, `${version} ${frame.event_type}`)
  const id = lines.find((line) => line.startsWith('id: '))
  return { id: id.slice('id: '.length), type: frame.event_type }
}

/** Reads frames until `enough` says so, which cuts the stream, or to its end. The last frame. */
async function frames(version, response, enough) {
  let rest = ''
  let last = null
  const decoder = new TextDecoder()
  for await (const bytes of response.body) {
    const blocks = (rest + decoder.decode(bytes, { stream: true })).split('\n\n')
    rest = blocks.pop()
    for (const block of blocks) {
      last = checkBlock(version, block) ?? last
      if (last !== null && enough(last)) return last
    }
  }
  return last
}

function submitChat(version, body) {
  return fetch(`${url}/chat/stream`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-wire-version': version },
    body: JSON.stringify(body),
  })
}

async function overChat(version) {
  const wholly = () => false
  for (const message of messages) {
    await frames(version, await submitChat(version, { message }), wholly)
  }
  for (const [, message] of cuts) {
    const response = await submitChat(version, { message, on_disconnect: 'continue' })
    const id = response.headers.get('x-response-id')
    // The first frames come before any work does.
    const cut = await frames(version, response, (frame) => frame.type === 'thinking')
    const where = `${url}/chat/${id}/stream`
    const headers = { 'x-wire-version': version, 'last-event-id': cut.id }
    const resumed = await fetch(where, { headers })
    checkBody('TurnCancelAccepted', await call('POST', `/turns/${id}/cancel`, {}))
    const end = await frames(version, resumed, wholly)
    const replayed = await fetch(where, { headers: { 'x-wire-version': version } })
    const again = await frames(version, replayed, wholly)
    if (again.id !== end.id) throw new Error(`${again.id} is not the end ${end.id}`)
    count(`${version} resumed to ${end.type}`)
  }
}

await overSession()
await overChat('0.5')
await overChat('0.4')
console.log(JSON.stringify(counts))
process.exit(0)
