import { createHash } from 'node:crypto'

/** Tells lists of rows apart, their order included; each row is JSON, which holds no line end. */
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
