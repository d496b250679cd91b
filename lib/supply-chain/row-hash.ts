import { createHash } from 'node:crypto'

/** Hash of a list of rows in their order. Each row is JSON text, which contains no line feed. */
export class RowHash {
  readonly #hash = createHash('sha256')

  add(json: string): void {
    this.#hash.update(json).update('\n')
  }

  /** 64 hexadecimal digits. */
  digest(): string {
    return this.#hash.digest('hex')
  }
}
