/** The drawing with its buttons and its legend. */
import { useEffect, useRef } from 'preact/hooks'
import { DROPPED_MEANS } from '../../parts/edge.tsx'
import { Drawing } from './drawing.ts'
import type { Graph, MapNode } from './graph.ts'

const ZOOM_STEP = 1.4

export interface PictureProps {
  readonly graph: Graph
  readonly selected: string | null
  readonly onChoose: (node: MapNode) => void
}

export function Picture({ graph, selected, onChoose }: PictureProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const probe = useRef<HTMLSpanElement>(null)
  const drawing = useRef<Drawing | null>(null)
  const choose = useRef(onChoose)
  choose.current = onChoose
  useEffect(() => {
    drawing.current = new Drawing(canvas.current!, probe.current!, (node) => choose.current(node))
    return () => drawing.current?.end()
  }, [])
  useEffect(() => drawing.current?.setGraph(graph), [graph])
  useEffect(() => drawing.current?.setSelected(selected), [selected])
  return (
    <figure class="map-picture">
      <div class="map-tools">
        <button type="button" onClick={() => drawing.current?.zoomBy(ZOOM_STEP)} aria-label="Zoom in">
          +
        </button>
        <button type="button" onClick={() => drawing.current?.zoomBy(1 / ZOOM_STEP)} aria-label="Zoom out">
          −
        </button>
        <button type="button" onClick={() => drawing.current?.fit()}>
          Fit
        </button>
      </div>
      <canvas
        ref={canvas}
        role="img"
        aria-label={
          `A drawing of ${graph.nodes.length} nodes and ${graph.edges.length} edges. ` +
          'The list of nodes and the table have the same.'
        }
      />
      <span ref={probe} class="unseen" aria-hidden="true" />
      <figcaption class="map-legend">
        <span>
          <Sample shape="namespace" /> namespace, opens with a click
        </span>
        <span>
          <Sample shape="workload" /> workload
        </span>
        <span>
          <Sample shape="external" /> external, opens into its networks
        </span>
        <span>
          <Sample shape="unresolved" /> unresolved
        </span>
        <span>
          <Sample shape="nodes" /> machines
        </span>
        <span>
          <Sample shape="allowed" /> allowed, wider with more flows
        </span>
        <span title={DROPPED_MEANS}>
          <Sample shape="dropped" /> dropped
        </span>
      </figcaption>
    </figure>
  )
}

function Sample({ shape }: { shape: string }) {
  return <span class={`map-sample ${shape}`} aria-hidden="true" />
}
