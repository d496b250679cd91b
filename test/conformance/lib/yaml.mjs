// Reads the YAML that manifests are made of: block and flow collections, plain, quoted and block scalars, several documents,
// whole-line and trailing comments. No anchors, tags or merges. Throws on what it does not understand.

/** Every document of a YAML text. Scalars: true, false, null and numbers as YAML 1.2 reads them, everything else text. */
export function readYaml(text) {
  const documents = [[]]
  for (const raw of text.split(/\r?\n/)) {
    if (/^---(\s|$)/.test(raw)) documents.push([])
    else documents.at(-1).push(raw)
  }
  return documents
    .filter((lines) => lines.some((l) => l.trim() !== '' && !l.trim().startsWith('#')))
    .map((lines) => new Reader(lines).document())
}

class Reader {
  constructor(lines) {
    this.lines = lines
    this.n = 0
  }
  fail(why) {
    throw new Error(`YAML line ${this.n + 1}: ${why}: ${JSON.stringify(this.lines[this.n])}`)
  }
  skip() {
    while (this.n < this.lines.length && /^\s*(#.*)?$/.test(this.lines[this.n])) this.n += 1
  }
  get indent() {
    return /^ */.exec(this.lines[this.n])[0].length
  }
  get done() {
    this.skip()
    return this.n >= this.lines.length
  }

  document() {
    this.skip()
    const value = this.node(0)
    if (!this.done) this.fail('unexpected text')
    return value
  }
  /** The node at the current line, which is indented by at least `least`. */
  node(least) {
    if (this.done || this.indent < least) return null
    const at = this.indent
    const line = this.lines[this.n].slice(at)
    if (/^-(\s|$)/.test(line)) return this.sequence(at)
    if (this.key(line)) return this.mapping(at)
    this.n += 1
    return this.inline(line, at - 1)
  }
  sequence(at) {
    const out = []
    while (!this.done && this.indent === at && /^-(\s|$)/.test(this.lines[this.n].slice(at))) {
      const line = this.lines[this.n]
      const rest = line.slice(at + 1)
      if (/^\s*(#.*)?$/.test(rest)) {
        this.n += 1
        out.push(this.node(at + 1))
        continue
      }
      // The entry starts on this line: read it as if the dash were a space.
      const body = rest.trimStart()
      if (this.key(body) || /^-(\s|$)/.test(body)) {
        this.lines[this.n] = `${line.slice(0, at)} ${rest}`
        out.push(this.node(at + 1))
        continue
      }
      this.n += 1
      out.push(this.inline(body, at))
    }
    return out
  }
  mapping(at) {
    const out = {}
    while (!this.done && this.indent === at) {
      const found = this.key(this.lines[this.n].slice(at))
      if (!found) this.fail('expected a key')
      if (Object.hasOwn(out, found.name)) this.fail('repeated key')
      this.n += 1
      if (/^\s*(#.*)?$/.test(found.rest)) {
        const nested =
          !this.done && (this.indent > at || (this.indent === at && /^-(\s|$)/.test(this.lines[this.n].slice(at))))
        out[found.name] = nested ? this.node(at) : null
      } else out[found.name] = this.inline(found.rest.trimStart(), at)
    }
    if (!this.done && this.indent > at) this.fail('unexpected indentation')
    return out
  }
  /** { name, rest } when the line starts with a key. */
  key(line) {
    const quoted = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*:(\s.*|)$/s.exec(line)
    if (quoted) return { name: scalar(quoted[1]), rest: quoted[2] }
    const plain = /^([^\s#"'[\]{},&*!|>%@`-][^#]*?|-[^\s#].*?|[^\s"'[\]{},&*!|>%@`#-].*?)\s*:(\s.*|)$/s.exec(line)
    return plain ? { name: plain[1], rest: plain[2] } : undefined
  }
  /** A value that starts in the middle of a line; continuation lines are indented by more than `at`. */
  inline(text, at) {
    const block = /^([|>])([+-]?)([1-9]?)([+-]?)\s*(#.*)?$/.exec(text)
    if (block) return this.block(block[1], block[2] || block[4], block[3] ? Number(block[3]) : 0, at)
    let whole = text
    const open = (t) => (/^["']/.test(t) ? !closed(t) : /^[[{]/.test(t) ? !balanced(t) : false)
    while (open(whole)) {
      if (this.n >= this.lines.length) this.fail('unterminated value')
      whole += ` ${this.lines[this.n].trim()}`
      this.n += 1
    }
    if (!/^["'[{]/.test(whole)) {
      whole = whole.replace(/\s+#.*$/, '')
      while (
        this.n < this.lines.length &&
        this.lines[this.n].trim() !== '' &&
        this.indent > at &&
        !this.lines[this.n].trim().startsWith('#')
      ) {
        whole += ` ${this.lines[this.n].trim().replace(/\s+#.*$/, '')}`
        this.n += 1
      }
    }
    return flow(whole.trim())
  }
  block(style, chomp, given, at) {
    const raw = []
    while (this.n < this.lines.length && (this.lines[this.n].trim() === '' || this.indent > at)) {
      raw.push(this.lines[this.n])
      this.n += 1
    }
    const first = raw.find((l) => l.trim() !== '') ?? ''
    const indent = given ? Math.max(at, 0) + given : /^ */.exec(first)[0].length
    const lines = raw.map((l) => (first === '' ? '' : l.slice(indent)))
    let end = lines.length
    while (end > 0 && lines[end - 1] === '') end -= 1
    const kept = lines.slice(0, end)
    let body
    if (style === '|') body = kept.join('\n')
    else {
      body = ''
      for (let i = 0; i < kept.length; i += 1) {
        if (i === 0) {
          body = kept[0]
          continue
        }
        const more = (l) => /^[ \t]/.test(l)
        if (kept[i] === '') {
          body += '\n'
          continue
        }
        const before = kept[i - 1]
        if (more(kept[i]) || more(before)) body += `\n${kept[i]}`
        else body += before === '' ? kept[i] : ` ${kept[i]}`
      }
    }
    if (end === 0) return ''
    if (chomp === '-') return body
    return chomp === '+' ? `${body}\n${'\n'.repeat(lines.length - end)}` : `${body}\n`
  }
}

function closed(t) {
  if (t[0] === "'") return /^'(?:[^']|'')*'\s*(#.*)?$/.test(t)
  return /^"(?:[^"\\]|\\.)*"\s*(#.*)?$/s.test(t)
}
function balanced(t) {
  let depth = 0
  let quote = ''
  for (let i = 0; i < t.length; i += 1) {
    const c = t[i]
    if (quote) {
      if (quote === '"' && c === '\\') i += 1
      else if (c === quote) quote = ''
      continue
    }
    if ((c === '"' || c === "'") && /[[{,:]\s*$/.test(t.slice(0, i))) quote = c
    else if (c === '[' || c === '{') depth += 1
    else if (c === ']' || c === '}') depth -= 1
  }
  return depth === 0
}
/** A flow collection or a scalar. */
function flow(text) {
  let i = 0
  const space = () => {
    while (/\s/.test(text[i] ?? '')) i += 1
  }
  const value = (stops) => {
    space()
    if (text[i] === '[') {
      i += 1
      const out = []
      for (space(); text[i] !== ']'; space()) {
        out.push(value(',]'))
        space()
        if (text[i] === ',') i += 1
        else if (text[i] !== ']') throw new Error(`flow sequence: ${text}`)
      }
      i += 1
      return out
    }
    if (text[i] === '{') {
      i += 1
      const out = {}
      for (space(); text[i] !== '}'; space()) {
        const name = value(':')
        space()
        if (text[i] !== ':') throw new Error(`flow mapping: ${text}`)
        i += 1
        out[String(name)] = value(',}')
        space()
        if (text[i] === ',') i += 1
        else if (text[i] !== '}') throw new Error(`flow mapping: ${text}`)
      }
      i += 1
      return out
    }
    const quoted = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')/.exec(text.slice(i))
    if (quoted) {
      i += quoted[0].length
      return scalar(quoted[0])
    }
    const start = i
    while (i < text.length && !(stops?.includes(text[i]) && (text[i] !== ':' || /[\s,}]|$/.test(text[i + 1] ?? ''))))
      i += 1
    return scalar(text.slice(start, i).trim())
  }
  const out = value('')
  space()
  if (i < text.length && text[i] !== '#') throw new Error(`text after a value: ${text}`)
  return out
}
function scalar(t) {
  if (t[0] === "'") return t.slice(1, -1).replaceAll("''", "'")
  if (t[0] === '"') {
    return t.slice(1, -1).replace(/\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)/gs, (_, e) => {
      if (/^[xuU]./.test(e) && e.length > 1) return String.fromCodePoint(Number.parseInt(e.slice(1), 16))
      return (
        {
          n: '\n',
          t: '\t',
          r: '\r',
          0: '\0',
          b: '\b',
          f: '\f',
          v: '\v',
          a: '\x07',
          e: '\x1b',
          N: '\u0085',
          _: '\u00a0',
          L: '\u2028',
          P: '\u2029',
        }[e] ?? e
      )
    })
  }
  if (['', '~', 'null', 'Null', 'NULL'].includes(t)) return null
  if (/^(true|True|TRUE)$/.test(t)) return true
  if (/^(false|False|FALSE)$/.test(t)) return false
  if (/^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$/.test(t)) return Number(t)
  if (/^0x[0-9a-fA-F]+$/.test(t)) return Number(t)
  return t
}
