/** A body that is kept in both codings, to be sent many times. */
export interface Kept {
  readonly plain: Buffer
  /** As gzip. */
  readonly packed: Buffer
}
