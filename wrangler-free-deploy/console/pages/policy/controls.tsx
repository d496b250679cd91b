/** Controls whose values are query parameters of the address, with the names of the API. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { go, hrefWith, usePlace } from '../../place.ts'

export interface Choice {
  readonly value: string
  readonly label: string
  readonly isDisabled?: boolean
}

/** The value of a parameter of the address, if it is one of those that there are; else the first one. */
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

/** The first choice is the default, which the address leaves out. */
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

/** The box that was ticked last: where it moves to another place of the page, the focus goes with it. */
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

/** A text that is taken when one leaves the field or presses Enter. */
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
