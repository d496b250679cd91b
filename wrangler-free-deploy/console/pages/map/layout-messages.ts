/** Messages between the page and the layout worker. Nodes are identified by their index. */

export interface StartLayout {
  readonly type: 'start'
  /** Positions carry the same number, so that those of an earlier graph are ignored. */
  readonly generation: number
  /** x and y of each node. */
  readonly positions: Float32Array
  readonly radii: Float32Array
  /** Indexes of the first and the second node of each link. */
  readonly links: Uint32Array
  /** A number for the open namespace of each node, -1 for none. Nodes of one namespace stay near each other. */
  readonly groups: Int32Array
  /** 1 moves everything; a smaller value only adjusts a graph that is mostly known. */
  readonly heat: number
  /** Whether to send only the final positions. */
  readonly onlyFinal: boolean
}

export type ToLayout =
  | StartLayout
  | { readonly type: 'drag'; readonly index: number; readonly x: number; readonly y: number }
  | { readonly type: 'release'; readonly index: number }

export interface FromLayout {
  readonly generation: number
  readonly positions: Float32Array
  readonly isSettled: boolean
}
