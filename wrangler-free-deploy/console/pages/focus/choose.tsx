/** Asks which workload to look at. */
import { useEffect, useState } from 'preact/hooks'
import { read } from '../../api/client.ts'
import { useSettled } from '../../hooks.ts'
import { Combobox } from '../../parts/combobox.tsx'
import { Failure } from '../../parts/states.tsx'
import { go, href } from '../../place.ts'

const TYPING_MS = 150

export function Choose({ start }: { start: string }) {
  const [text, setText] = useState(start)
  const [fault, setFault] = useState<string | null>(null)
  const { values, error } = useWorkloads(useSettled(text, TYPING_MS))
  const open = (name: string) => {
    const parts = name.split('/')
    if (parts.length === 3 && parts.every((part) => part !== '')) go(href(['focus', ...parts]))
    else setFault('Name the workload as namespace/Kind/name, or take one of the list.')
  }
  const options = values.map((value) => ({ key: value, label: value }))
  return (
    <>
      <h1>Focus</h1>
      <p class="lead">One workload between its callers and its callees. Which one?</p>
      <div class="focus-choose">
        <Combobox
          label="Workload"
          placeholder="namespace/Kind/name"
          text={text}
          options={options}
          onText={(next) => {
            setText(next)
            setFault(null)
          }}
          onTake={(option) => open(option?.key ?? text.trim())}
          takesFirst={values.length === 1}
          {...(values.length === 0 && text !== '' && { note: 'No known workload begins like this.' })}
        />
        {fault && (
          <p class="fault" role="alert">
            {fault}
          </p>
        )}
      </div>
      {error && <Failure error={error} />}
    </>
  )
}

function useWorkloads(prefix: string): { values: readonly string[]; error: Error | null } {
  const [found, setFound] = useState<{ values: readonly string[]; error: Error | null }>({ values: [], error: null })
  useEffect(() => {
    const abort = new AbortController()
    read('/flows/hints', { query: { field: 'workload', prefix } }, abort.signal).then(
      ({ values }) => setFound({ values: values.filter((value) => value.split('/').length === 3), error: null }),
      (error) => abort.signal.aborted || setFound({ values: [], error }),
    )
    return () => abort.abort()
  }, [prefix])
  return found
}
