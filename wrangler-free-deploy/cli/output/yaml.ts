/** JSON as YAML 1.2 in block style. A library for this would be a fifth of the program. */
import { cleanJson } from './clean.ts'

const INDENT = '  '
/** Texts that need no quotes: all others are JSON strings, which YAML has, too. */
const PLAIN = /^[a-z_/](?:[\w./@+-]|:(?=\w))*$/i
/** Plain words that some readers take for another type. */
const RESERVED = /^(?:true|false|yes|no|on|off|y|n|null)$/i

export const yamlOf = (answer: unknown): string => `${blockOf(answer, '').replace(/^\n/, '')}\n`

/** A value behind its key or dash: on the same line, or on further lines. */
function blockOf(value: unknown, indent: string): string {
  if (typeof value !== 'object' || value === null) return scalarOf(value)
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]'
    return value.map((one) => `\n${indent}- ${blockOf(one, indent + INDENT).trimStart()}`).join('')
  }
  const entries = Object.entries(value)
  if (entries.length === 0) return '{}'
  return entries.map(([key, one]) => `\n${indent}${scalarOf(key)}:${memberOf(one, indent)}`).join('')
}

function memberOf(value: unknown, indent: string): string {
  const block = blockOf(value, indent + INDENT)
  return block.startsWith('\n') ? block : ` ${block}`
}

function scalarOf(value: unknown): string {
  if (typeof value === 'string' && PLAIN.test(value) && !RESERVED.test(value)) return value
  return cleanJson(JSON.stringify(value))
}
