// Compiles every schema of the folder in the first argument with ajv in strict mode: the files, the
// components of the OpenAPI document, and the schemas in its paths. Prints what was compiled.
import fs from 'node:fs'
import path from 'node:path'
import Ajv from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

const folder = process.argv[2]
const read = (file) => JSON.parse(fs.readFileSync(path.join(folder, file), 'utf8'))
const strict = () => {
  const ajv = new Ajv({ strict: true, allErrors: true })
  addFormats.default(ajv)
  return ajv
}
const counts = { files: 0, components: 0, inline: 0 }

for (const file of fs.readdirSync(folder, { recursive: true })) {
  if (!file.endsWith('.json') || ['asyncapi.json', 'openapi.json'].includes(file)) continue
  compile(file, read(file), strict())
  counts.files += 1
}

const document = read('openapi.json')
const { schemas } = document.components
const within = () => {
  const ajv = strict()
  // The document is no schema: its schemas are what is compiled.
  ajv.addVocabulary(['components'])
  ajv.addSchema({ components: document.components }, 'openapi')
  return ajv
}
for (const name of Object.keys(schemas)) {
  compile(name, { $ref: `openapi#/components/schemas/${name}` }, within())
  counts.components += 1
}
const seen = new Set()
const absolute = (schema) =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"openapi#/components'))
const visit = (value, at) => {
  if (value === null || typeof value !== 'object') return
  if ('schema' in value) {
    const text = JSON.stringify(value.schema)
    if (!seen.has(text)) {
      seen.add(text)
      compile(`${at}/schema`, absolute(value.schema), within())
      counts.inline += 1
    }
  }
  for (const [key, inner] of Object.entries(value)) visit(inner, `${at}/${key}`)
}
visit(document.paths, '')
console.log(JSON.stringify(counts))

function compile(name, schema, ajv) {
  try {
    ajv.compile(schema)
  } catch (error) {
    throw new Error(`${name}: ${error.message}`)
  }
}
