// Judges the AsyncAPI document at the first argument by the schema of AsyncAPI 3.0, follows every
// reference in it, and compiles the schema of every message. Prints what there is, or what is wrong
// and a status of 1.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import Ajv from 'ajv'
import addFormats from 'ajv-formats'

const specification = createRequire(import.meta.url)('@asyncapi/specs/schemas/3.0.0.json')
const document = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'))
const options = { strict: false, allErrors: true }
// The schema of AsyncAPI brings the schema of schemas with it.
const judges = new Ajv({ ...options, meta: false, validateSchema: false })
const ajv = new Ajv(options)
for (const each of [judges, ajv]) addFormats.default(each)
const counts = { channels: 0, operations: 0, messages: 0, references: 0 }

function fail(message) {
  console.error(message)
  process.exit(1)
}

const judge = judges.compile(specification)
if (!judge(document)) fail(ajv.errorsText(judge.errors, { separator: '\n' }))

function follow(reference) {
  let at = document
  for (const part of reference.slice(2).split('/')) {
    at = at?.[part.replaceAll('~1', '/').replaceAll('~0', '~')]
  }
  if (!reference.startsWith('#/') || at === undefined) fail(`${reference} leads nowhere`)
  counts.references += 1
  return at
}

function visit(value) {
  if (value === null || typeof value !== 'object') return
  if (typeof value.$ref === 'string') follow(value.$ref)
  Object.values(value).forEach(visit)
}
visit(document)

for (const operation of Object.values(document.operations)) {
  const channel = follow(operation.channel.$ref)
  const known = Object.values(channel.messages).map((message) => message.$ref)
  for (const message of operation.messages) {
    if (!known.includes(follow(message.$ref).$ref)) fail(`${message.$ref} is of another channel`)
  }
  counts.operations += 1
}
ajv.addSchema({ components: document.components }, 'document')
for (const [name, message] of Object.entries(document.components.messages)) {
  try {
    ajv.compile({ $ref: `document${message.payload.$ref}` })
  } catch (error) {
    fail(`${name}: ${error.message}`)
  }
  counts.messages += 1
}
counts.channels = Object.keys(document.channels).length
console.log(JSON.stringify(counts))
