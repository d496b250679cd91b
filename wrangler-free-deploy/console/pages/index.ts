/** The pages, by the first segment of their address. Each is loaded when it is opened. */
import type { ComponentType } from 'preact'

export interface PageProps {
  /** The segments after the first, such as namespace, kind and name. */
  readonly rest: readonly string[]
}

export interface PageEntry {
  readonly title: string
  readonly load: () => Promise<{ default: ComponentType<PageProps> }>
  /** In the menu; pages of one thing are not. */
  readonly isListed?: boolean
  /** Whether the time window of the frame says what it shows. */
  readonly hasWindow?: boolean
}

/** In the order of the menu; the start page has the empty segment. */
export const PAGES: Readonly<Record<string, PageEntry>> = {
  policy: { title: 'Policy', load: () => import('./policy/index.tsx'), isListed: true },
  nodes: { title: 'Nodes', load: () => import('./nodes/list.tsx'), isListed: true },
}
