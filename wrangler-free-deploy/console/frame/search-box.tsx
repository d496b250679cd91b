/** The search box in the header of all pages. `/` moves the focus to it. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { useRead } from '../api/query.ts'
import { useSettled } from '../hooks.ts'
import { Combobox, type Option } from '../parts/combobox.tsx'
import { go, href } from '../place.ts'
import { type Hit, labelOf, placeOf } from './hits.ts'

const TYPING_MS = 200
const MIN_CHARS = 2
const SHOWN = 8
const OF_EACH_TYPE = 4

interface HitOption extends Option {
  readonly to: string
}

export function SearchBox() {
  const [text, setText] = useState('')
  const input = useRef<HTMLInputElement>(null)
  const asked = useSettled(text.trim(), TYPING_MS)
  const isAsked = asked.length >= MIN_CHARS
  const { data, error } = useRead(
    '/search',
    { query: { q: asked, limit: OF_EACH_TYPE } },
    { enabled: isAsked, pollMs: 0 },
  )
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      event.preventDefault()
      input.current?.focus()
      input.current?.select()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
  const isAnswered = isAsked && asked === text.trim() && data !== undefined
  const hits: readonly Hit[] = isAnswered ? data.hits : []
  const options = hits.slice(0, SHOWN).map(
    (hit, index): HitOption => ({
      key: `${index}`,
      label: labelOf(hit),
      note: hit.running === false ? `${hit.type}, does not run` : hit.type,
      to: placeOf(hit),
    }),
  )
  const all: HitOption = { key: 'all', label: `All results for “${asked}”`, to: href(['search'], { q: asked }) }
  const note =
    isAnswered && hits.length === 0
      ? 'Nothing is stored that this could name.'
      : isAsked && error
        ? error.message
        : undefined
  return (
    <search class="search-box">
      <Combobox
        label="Search"
        placeholder="Search  ( / )"
        text={text}
        options={options.length === 0 ? options : [...options, all]}
        inputRef={input}
        onText={setText}
        onTake={(option) => {
          if (option === null && text.trim() === '') return
          go(option?.to ?? href(['search'], { q: text.trim() }))
          setText('')
          input.current?.blur()
        }}
        {...(note !== undefined && { note })}
      />
    </search>
  )
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('input, textarea, select, [contenteditable]') !== null
}
