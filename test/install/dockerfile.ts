/** Parses the Dockerfile as far as ours needs: unknown instructions and forms are errors and never skipped. */

export interface Instruction {
  readonly name: string
  /** `--name=value` before the arguments. */
  readonly flags: Readonly<Record<string, string>>
  /** The rest, with build arguments filled in. */
  readonly text: string
}

export interface Stage {
  /** The name after `AS`; the last stage has none. */
  readonly name: string | undefined
  readonly base: string
  /** All except FROM and ARG, in order. */
  readonly instructions: readonly Instruction[]
}

/** The flags that each instruction may have. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  ARG: [],
  FROM: ['platform'],
  LABEL: [],
  ENV: [],
  WORKDIR: [],
  COPY: ['from'],
  RUN: [],
  USER: [],
  EXPOSE: [],
  STOPSIGNAL: [],
  HEALTHCHECK: ['interval', 'timeout', 'start-period', 'retries'],
  ENTRYPOINT: [],
  CMD: [],
}

/** Arguments that the builder itself sets. */
const GIVEN: Readonly<Record<string, string>> = { BUILDPLATFORM: 'linux/amd64' }

/** The stages in order. `given` are build arguments. */
export function parseDockerfile(text: string, given: Readonly<Record<string, string>> = {}): Stage[] {
  const stages: { name: string | undefined; base: string; instructions: Instruction[] }[] = []
  const beforeStages = new Map<string, string>(Object.entries(GIVEN))
  let inStage = new Map<string, string>()
  for (const line of logicalLines(text)) {
    const stage = stages.at(-1)
    const { name, flags, rest } = split(line)
    const known = stage ? inStage : beforeStages
    if (name === 'ARG') {
      const [, argument, value] = /^(\w+)(?:=(.*))?$/.exec(rest) ?? []
      if (argument === undefined) throw new Error(`not understood: ${line}`)
      known.set(
        argument,
        given[argument] ?? (value === undefined ? beforeStages.get(argument) : fill(value, known)) ?? '',
      )
    } else if (name === 'FROM') {
      const [, base, as] = /^(\S+)(?:\s+AS\s+(\w+))?$/i.exec(fill(rest, beforeStages)) ?? []
      if (base === undefined) throw new Error(`not understood: ${line}`)
      fill(flags.platform ?? '', beforeStages)
      stages.push({ name: as, base, instructions: [] })
      inStage = new Map()
    } else if (!stage) {
      throw new Error(`before the first FROM: ${line}`)
    } else {
      // Variables of RUN are left to the shell.
      stage.instructions.push({ name, flags, text: name === 'RUN' ? rest : fill(rest, known) })
    }
  }
  return stages
}

/** Removes comment lines and joins lines that end in a backslash. */
function logicalLines(text: string): string[] {
  const lines = text.split('\n').filter((line) => !/^\s*#/.test(line))
  return lines
    .join('\n')
    .replace(/\s*\\\n\s*/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
}

function split(line: string): { name: string; flags: Record<string, string>; rest: string } {
  const [, name, tail] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? []
  const allowed = KNOWN[name ?? '']
  if (!name || !allowed) throw new Error(`not understood: ${line}`)
  const flags: Record<string, string> = {}
  let rest = tail!
  for (;;) {
    const [whole, flag, value] = /^--([a-z-]+)=(\S+)\s+/.exec(rest) ?? []
    if (whole === undefined) break
    if (!allowed.includes(flag!)) throw new Error(`unknown flag --${flag}: ${line}`)
    flags[flag!] = value!
    rest = rest.slice(whole.length)
  }
  if (rest.startsWith('--')) throw new Error(`unknown flag: ${line}`)
  return { name, flags, rest }
}

function fill(text: string, values: ReadonlyMap<string, string>): string {
  return text.replace(/\$\{(\w+)\}|\$(\w+)/g, (whole, braced?: string, bare?: string) => {
    const value = values.get(braced ?? bare ?? '')
    if (value === undefined) throw new Error(`${whole} is no argument of this stage`)
    return value
  })
}

/** Parses `a=b c="d e"` of ENV and LABEL. */
export function pairs(text: string): Record<string, string> {
  const found: Record<string, string> = {}
  const rest = text.replace(
    /([\w.-]+)=(?:"([^"]*)"|([^\s"]*))(?:\s+|$)/g,
    (_, key: string, quoted?: string, bare?: string) => {
      found[key] = quoted ?? bare ?? ''
      return ''
    },
  )
  if (rest !== '') throw new Error(`not understood: ${rest}`)
  return found
}

/**
 * The JSON form of CMD, ENTRYPOINT and the health check, which is the only one without a shell that would keep signals
 * from the program.
 */
export function exec(text: string): string[] {
  const words: unknown = JSON.parse(text)
  if (!Array.isArray(words) || words.some((word) => typeof word !== 'string'))
    throw new Error(`not a list of words: ${text}`)
  return words
}
