/** Controls whose values are query parameters of the address, with the names of the API. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { go, hrefWith, usePlace } from '../../place.ts'

export interface Choice {
  readonly value: string
  readonly label: string
  readonly isDisabled?: boolean
}

/** The value of a parameter of the address if it is a valid choice, otherwise the first choice. */
export function useChoice(name: string, choices: readonly Choice[]): string {
  const { query } = usePlace()
  const value = query.get(name)
  return choices.find((one) => one.value === value && !one.isDisabled)?.value ?? choices[0]!.value
}

export function useYes(name: string): boolean {
  return usePlace().query.get(name) === 'true'
}

interface Named {
  readonly name: string
  readonly label: ComponentChildren
}

/** The first choice is the default and is left out of the address. */
export function Select({ name, label, choices }: Named & { choices: readonly Choice[] }) {
  const value = useChoice(name, choices)
  return (
    <label class="policy-field">
      {label}
      <select
        value={value}
        onChange={({ currentTarget }) => {
          const next = currentTarget.value
          go(hrefWith({ [name]: next === choices[0]!.value ? null : next }))
        }}
      >
        {choices.map((one) => (
          <option key={one.value} value={one.value} disabled={one.isDisabled}>
            {one.label}
          </option>
        ))}
      </select>
    </label>
  )
}

/** The last ticked box. If it is rendered again at another place of the page, it gets the focus there. */
let ticked: string | null = null

export function Check({ name, label }: Named) {
  const box = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (ticked === name) box.current?.focus()
    ticked = null
  }, [])
  return (
    <label class="check">
      <input
        type="checkbox"
        ref={box}
        checked={useYes(name)}
        onChange={({ currentTarget }) => {
          ticked = name
          go(hrefWith({ [name]: currentTarget.checked ? 'true' : null }))
        }}
      />{' '}
      {label}
    </label>
  )
}

interface FieldProps extends Named {
  readonly fallback?: string
  readonly pattern?: string
  readonly inputMode?: 'numeric' | 'text'
  readonly placeholder?: string
}

/** A text field that is applied when it loses the focus or on Enter. */
export function Field({ name, label, fallback = '', pattern, inputMode = 'text', placeholder }: FieldProps) {
  const taken = usePlace().query.get(name) ?? fallback
  const [text, setText] = useState(taken)
  useEffect(() => setText(taken), [taken])
  return (
    <label class="policy-field">
      {label}
      <input
        type="text"
        inputMode={inputMode}
        pattern={pattern}
        placeholder={placeholder}
        autoComplete="off"
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onChange={({ currentTarget }) => {
          const next = currentTarget.value.trim()
          if (currentTarget.validity.valid) go(hrefWith({ [name]: next === fallback ? null : next }))
        }}
      />
    </label>
  )
}
