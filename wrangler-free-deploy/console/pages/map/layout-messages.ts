/** What the page and the worker of the layout tell each other. Nodes are known by their index. */

export interface StartLayout {
  readonly type: 'start'
  /** Answers carry it, so that those of an earlier graph are told apart. */
  readonly generation: number
  /** x and y of each node. */
  readonly positions: Float32Array
  readonly radii: Float32Array
  /** Index of the first and the second node of each link. */
  readonly links: Uint32Array
  /** The open namespace of each node, by a number; -1 for none. Nodes of one stay near each other. */
  readonly groups: Int32Array
  /** 1 moves everything; less lets a graph that is known for the most part settle again. */
  readonly heat: number
  /** Whether to send the end of the movement only. */
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
