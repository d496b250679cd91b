/** A text with line numbers, editable or read-only. It is a plain text area, so Tab leaves it as usual. */
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { linesOf } from './line-diff.ts'

/** Line height; the same as in policy.css. */
const LINE_PX = 20
/** Line numbers rendered above and below the visible ones. */
const AROUND = 20
/** Number of lines shown above a line to which the editor scrolls. */
const LINES_ABOVE = 5

export type Mark = 'fault' | 'denied'

/** A request to scroll to a line. A new object scrolls again, even to the same line. */
export interface Going {
  readonly line: number
}

export interface EditorProps {
  readonly label: string
  readonly text: string
  /** Undefined for a read-only text. */
  readonly onText?: (text: string) => void
  readonly onSubmit?: () => void
  /** Marked lines, counted from 1. */
  readonly marks?: ReadonlyMap<number, Mark>
  readonly going?: Going | null
  /** The id of the element that describes an error in the text. */
  readonly faultId?: string | undefined
  readonly placeholder?: string
}

export function Editor({ label, text, onText, onSubmit, marks, going, faultId, placeholder }: EditorProps) {
  const id = useId()
  const area = useRef<HTMLTextAreaElement>(null)
  const [scroll, setScroll] = useState({ top: 0, height: 0 })
  const measure = () => {
    const { scrollTop: top = 0, clientHeight: height = 0 } = area.current ?? {}
    setScroll((before) => (before.top === top && before.height === height ? before : { top, height }))
  }
  useLayoutEffect(measure, [text])
  useEffect(() => {
    const observer = new ResizeObserver(measure)
    observer.observe(area.current!)
    return () => observer.disconnect()
  }, [])
  useEffect(() => {
    if (going) goToLine(area.current!, going.line)
  }, [going])
  const count = linesOf(text).length
  const first = Math.max(0, Math.floor(scroll.top / LINE_PX) - AROUND)
  const last = Math.min(count, Math.ceil((scroll.top + scroll.height) / LINE_PX) + AROUND)
  return (
    <div class="editor">
      <div class="editor-numbers" aria-hidden="true" style={{ width: `${Math.max(3, `${count}`.length) + 2}ch` }}>
        <div style={{ transform: `translateY(${first * LINE_PX - scroll.top}px)` }}>
          {Array.from({ length: Math.max(0, last - first) }, (_, i) => {
            const line = first + i + 1
            const mark = marks?.get(line)
            return (
              <div key={line} class={mark === undefined ? 'line' : `line line-${mark}`}>
                {line}
              </div>
            )
          })}
        </div>
      </div>
      <textarea
        id={id}
        ref={area}
        aria-label={label}
        aria-invalid={faultId === undefined ? undefined : true}
        aria-describedby={faultId}
        value={text}
        readOnly={onText === undefined}
        placeholder={placeholder}
        wrap="off"
        spellcheck={false}
        autoComplete="off"
        autoCapitalize="off"
        onScroll={measure}
        onInput={({ currentTarget }) => onText?.(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
          event.preventDefault()
          onSubmit?.()
        }}
      />
    </div>
  )
}

/** Selects the line and scrolls to it. */
function goToLine(area: HTMLTextAreaElement, line: number): void {
  const lines = area.value.split('\n')
  const start = lines.slice(0, line - 1).reduce((chars, one) => chars + one.length + 1, 0)
  area.focus()
  area.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0))
  area.scrollTop = Math.max(0, line - 1 - LINES_ABOVE) * LINE_PX
  area.scrollLeft = 0
}
