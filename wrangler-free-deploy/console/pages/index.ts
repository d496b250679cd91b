/** The pages, by the first segment of their address. Each is loaded when it is opened. */
import type { ComponentType } from 'preact'

export interface PageProps {
  /** The segments after the first, such as namespace, kind and name. */
  readonly rest: readonly string[]
}

export interface PageEntry {
  readonly title: string
  readonly load: () => Promise<{ default: ComponentType<PageProps> }>
  /** Pages of a single thing are not in the menu. */
  readonly isListed?: boolean
  /** Whether the page depends on the time window of the frame. */
  readonly hasWindow?: boolean
}

/** In the order of the menu; the start page has an empty segment. */
export const PAGES: Readonly<Record<string, PageEntry>> = {
  '': { title: 'Start', load: () => import('./start/start.tsx'), isListed: true },
  map: { title: 'Map', load: () => import('./map/index.tsx'), isListed: true, hasWindow: true },
  focus: { title: 'Focus', load: () => import('./focus/index.tsx'), hasWindow: true },
  flows: { title: 'Flows', load: () => import('./flows/list.tsx'), isListed: true, hasWindow: true },
  workloads: { title: 'Workloads', load: () => import('./workloads/list.tsx'), isListed: true },
  workload: { title: 'Workload', load: () => import('./workload/index.tsx') },
  policy: { title: 'Policy', load: () => import('./policy/index.tsx'), isListed: true },
  vulnerabilities: { title: 'Vulnerabilities', load: () => import('./vulnerabilities/list.tsx'), isListed: true },
  vulnerability: { title: 'Vulnerability', load: () => import('./vulnerabilities/vulnerability.tsx') },
  images: { title: 'Images', load: () => import('./images/list.tsx'), isListed: true },
  image: { title: 'Image', load: () => import('./images/image.tsx') },
  packages: { title: 'Packages', load: () => import('./packages/list.tsx'), isListed: true },
  nodes: { title: 'Nodes', load: () => import('./nodes/list.tsx'), isListed: true },
  node: { title: 'Node', load: () => import('./nodes/node.tsx') },
  health: { title: 'Health', load: () => import('./health/health.tsx'), isListed: true },
  denials: { title: 'Denials', load: () => import('./denials/list.tsx'), hasWindow: true },
  findings: { title: 'CPU and memory', load: () => import('./findings/list.tsx') },
  search: { title: 'Search', load: () => import('./search/list.tsx') },
}
