/** Several files of policies as one body, and the places of its documents in the files. */
import { EXIT, Failure } from '../failure.ts'

/** The most that the broker reads. */
export const MAX_BODY_BYTES = 1024 * 1024

export interface PolicyFile {
  readonly name: string
  readonly text: string
}

interface Part {
  readonly name: string
  /** Documents and lines of the body before this file. */
  readonly documentsBefore: number
  readonly linesBefore: number
}

export interface Documents {
  readonly text: string
  readonly parts: readonly Part[]
}

/** A stream of YAML documents; JSON is YAML. */
export function joined(files: readonly PolicyFile[]): Documents {
  const parts: Part[] = []
  let text = ''
  let documents = 0
  for (const file of files) {
    if (text !== '') text += text.endsWith('\n') ? '---\n' : '\n---\n'
    parts.push({ name: file.name, documentsBefore: documents, linesBefore: linesOf(text) - 1 })
    text += file.text
    documents += countDocuments(file.text)
  }
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_BODY_BYTES)
    throw new Failure(`${bytes} bytes of policies: the broker reads at most ${MAX_BODY_BYTES}`, EXIT.usage)
  return { text, parts }
}

/** The file of a document of the body, and its place in that file, from 1. */
export function placeOf({ parts }: Documents, document: number): { readonly name: string; readonly document: number } {
  const part = parts.findLast(({ documentsBefore }) => documentsBefore < document) ?? parts[0]!
  return { name: part.name, document: document - part.documentsBefore }
}

/** A refusal with the place in the files, instead of that in the body. */
export function placed(documents: Documents, refusal: string): string {
  return refusal.replace(/^document (\d+): (?:line (\d+): )?/, (_, document: string, line?: string) => {
    if (line === undefined) {
      const place = placeOf(documents, Number(document))
      return `${place.name}: document ${place.document}: `
    }
    // A line is exact even where the text breaks the documents.
    const part = documents.parts.findLast(({ linesBefore }) => linesBefore < Number(line)) ?? documents.parts[0]!
    const within = Math.max(1, Number(document) - part.documentsBefore)
    return `${part.name}: document ${within}: line ${Number(line) - part.linesBefore}: `
  })
}

const linesOf = (text: string): number => text.split(/\r\n|[\n\r]/).length

/** The beginning or end of a document (YAML 1.2.2, 9.1.2). */
const MARKER = /(?<=^|[\n\r])(?:---|\.\.\.)(?=[ \t\n\r]|$)/

/** The broker counts those with content. */
export const countDocuments = (text: string): number => text.split(MARKER).filter(hasContent).length

function hasContent(document: string): boolean {
  const lines = document.split(/[\n\r]/).map((line) => line.trim())
  const content = lines.filter((line) => line !== '' && !line.startsWith('#'))
  return content.length > 0 && !(content.length === 1 && /^(~|null|Null|NULL)(\s+#.*)?$/.test(content[0]!))
}
