/** The observed syscalls as buttons: each removes or restores a name. Other names can be added. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { go, hrefWith, type Query } from '../../../place.ts'
import { allowed, type Edits, typedNames, withAdded, withRemoved, withRestored } from './edits.ts'

const edit = (query: Query) => go(hrefWith(query), { replace: true })

export function Edited({ observed, edits }: { observed: readonly string[]; edits: Edits }) {
  const [typed, setTyped] = useState('')
  const names = typedNames(typed)
  const before = allowed(observed, edits)
  const known = names.filter((name) => before.includes(name))
  const { add, remove } = edits
  return (
    <details open={add.length > 0 || remove.length > 0}>
      <summary>
        Edit the list
        {(add.length > 0 || remove.length > 0) && `: ${add.length} added, ${remove.length} left out`}
      </summary>
      <div class="section">
        <form
          class="form-row"
          onSubmit={(event) => {
            event.preventDefault()
            if (names.length === known.length) return
            edit(withAdded(edits, names, observed))
            setTyped('')
          }}
        >
          <label class="field">
            Allow also
            <input
              value={typed}
              placeholder="io_uring_setup, io_uring_enter"
              onInput={({ currentTarget }) => setTyped(currentTarget.value)}
            />
          </label>
          <button type="submit" disabled={names.length === known.length}>
            Add
          </button>
          {(add.length > 0 || remove.length > 0) && (
            <button type="button" class="quiet" onClick={() => edit({ add: null, remove: null })}>
              Undo all edits
            </button>
          )}
        </form>
        {known.length > 0 && (
          <p class="faint" role="status">
            Already allowed: {known.join(', ')}
          </p>
        )}
        {remove.length > 0 && (
          <Names title="Left out">
            {remove.map((name) => (
              <Name
                key={name}
                name={name}
                sign="↩"
                action="Take back"
                onClick={() => edit(withRestored(edits, name))}
              />
            ))}
          </Names>
        )}
        <Names title="Allowed">
          {before.map((name) => (
            <Name
              key={name}
              name={add.includes(name) ? `${name} (added)` : name}
              sign="×"
              action="Leave out"
              onClick={() => edit(withRemoved(edits, name))}
            />
          ))}
        </Names>
      </div>
    </details>
  )
}

function Names({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div>
      <h3 class="small-title">{title}</h3>
      <ul class="name-list">{children}</ul>
    </div>
  )
}

function Name({ name, sign, action, onClick }: { name: string; sign: string; action: string; onClick: () => void }) {
  return (
    <li>
      <button type="button" class="chip" aria-label={`${action} ${name}`} title={action} onClick={onClick}>
        <code>{name}</code> <span aria-hidden="true">{sign}</span>
      </button>
    </li>
  )
}
