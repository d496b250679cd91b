/** The fenced blocks of a Markdown file, with the words after their language: a test runs `sh run`. */

export interface Block {
  /** The last heading before the block. */
  readonly section: string
  readonly line: number
  readonly language: string
  /** The words after the language. */
  readonly tags: readonly string[]
  readonly text: string
  /** The expected output of a block that runs: the block `text` right after it. Empty without one. */
  readonly output: string
}

/** All blocks in order, except those that show the output of another. */
export function blocksOf(markdown: string): Block[] {
  const found: (Omit<Block, 'output'> & { output: string; end: number })[] = []
  const lines = markdown.split('\n')
  let section = ''
  for (let at = 0; at < lines.length; at++) {
    section = /^#+ (.*)/.exec(lines[at]!)?.[1] ?? section
    const [, info] = /^```(.*)/.exec(lines[at]!) ?? []
    if (info === undefined) continue
    const start = at
    while (lines[++at] !== '```') if (at >= lines.length) throw new Error(`line ${start + 1}: the block has no end`)
    const text = lines.slice(start + 1, at).join('\n')
    const [language = '', ...tags] = info.split(' ')
    const before = found.at(-1)
    const isOutput =
      language === 'text' &&
      before?.tags.includes('run') &&
      lines.slice(before.end + 1, start).every((line) => line === '')
    if (isOutput) before!.output = `${text}\n`
    else found.push({ section, line: start + 1, language, tags, text, output: '', end: at })
  }
  return found
}

/** The commands of a block: continued lines are joined. */
export const commandsOf = ({ text }: Block) =>
  text
    .replace(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
