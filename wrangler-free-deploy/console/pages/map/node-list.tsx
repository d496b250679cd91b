/** The nodes as a list, which offers everything by keyboard that the drawing offers by pointer. */
import { useEffect, useRef } from 'preact/hooks'
import { useSettled } from '../../hooks.ts'
import type { MapNode } from './graph.ts'

const TYPING_MS = 800

export interface NodeListProps {
  readonly nodes: readonly MapNode[]
  readonly selected: MapNode | null
  readonly onSelect: (node: MapNode | null) => void
  /** Enter, or a second click. */
  readonly onChoose: (node: MapNode) => void
}

const number = new Intl.NumberFormat()
const optionId = (index: number) => `map-node-${index}`

export function NodeList({ nodes: given, selected, onSelect, onChoose }: NodeListProps) {
  // In a task of its own: to render 500 nodes takes about as long as to build the graph.
  const nodes = useSettled(given, 0)
  const typed = useRef({ text: '', at: 0 })
  const index = selected === null ? -1 : nodes.findIndex(({ id }) => id === selected.id)
  const list = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const [box, option] = [list.current, list.current?.children[index] as HTMLElement | undefined]
    if (!box || !option) return
    // `scrollIntoView` would scroll the page as well.
    if (option.offsetTop < box.scrollTop) box.scrollTop = option.offsetTop
    const below = option.offsetTop + option.offsetHeight - box.clientHeight
    if (below > box.scrollTop) box.scrollTop = below
  }, [index])
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const to = targetOf(event.key, index, nodes.length) ?? byLetter(event)
    if (to !== undefined) onSelect(nodes[to] ?? null)
    else if (event.key === 'Enter' && selected !== null) onChoose(selected)
    else if (event.key === 'Escape') onSelect(null)
    else return
    event.preventDefault()
  }
  /** The next node whose name begins with the typed letters. */
  const byLetter = ({ key, timeStamp }: KeyboardEvent): number | undefined => {
    if (key.length !== 1 || key === ' ') return undefined
    const { text, at } = typed.current
    typed.current = { text: timeStamp - at < TYPING_MS ? text + key.toLowerCase() : key.toLowerCase(), at: timeStamp }
    const first = typed.current.text.length === 1 ? index + 1 : Math.max(index, 0)
    const turned = [...nodes.slice(first), ...nodes.slice(0, first)]
    const found = turned.find(({ label }) => label.toLowerCase().startsWith(typed.current.text))
    return found === undefined ? undefined : nodes.indexOf(found)
  }
  return (
    <div>
      <p id="map-nodes-label" class="map-side-title">
        Nodes
      </p>
      <p id="map-nodes-help" class="faint map-help">
        Arrows select, Enter opens a namespace or the external peers.
      </p>
      <div
        ref={list}
        class="map-nodes"
        role="listbox"
        tabIndex={0}
        aria-labelledby="map-nodes-label"
        aria-describedby="map-nodes-help"
        aria-activedescendant={index < 0 ? undefined : optionId(index)}
        onKeyDown={onKeyDown}
      >
        {nodes.map((node, i) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the list, which names the active option
          // biome-ignore lint/a11y/useKeyWithClickEvents: the list handles the keys
          <div
            key={node.id}
            id={optionId(i)}
            role="option"
            aria-selected={i === index}
            class={i === index ? 'option active' : 'option'}
            onClick={() => (i === index ? onChoose(node) : onSelect(node))}
          >
            <span class="clip">
              {node.kind === 'workload' || node.kind === 'pod' || node.kind === 'service' ? (
                <span class="faint-inline">
                  <bdi>{node.namespace}</bdi>/
                </span>
              ) : null}
              <bdi>{node.label}</bdi>
            </span>
            <span class="faint">{number.format(node.flows)} flows</span>
          </div>
        ))}
      </div>
    </div>
  )
}

function targetOf(key: string, index: number, count: number): number | undefined {
  if (key === 'ArrowDown') return Math.min(index + 1, count - 1)
  if (key === 'ArrowUp') return Math.max(index - 1, 0)
  if (key === 'Home') return 0
  if (key === 'End') return count - 1
  return undefined
}
