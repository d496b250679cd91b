/** Asks for the read token. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { queries } from '../api/query.ts'
import { currentToken, signIn, tokenSource } from '../api/session.ts'

export function TokenPage() {
  const [text, setText] = useState('')
  const [remember, setRemember] = useState(false)
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => input.current?.focus(), [])
  if (tokenSource === 'proxy')
    return (
      <main class="sheet">
        <h1>The proxy has no valid token</h1>
        <p>
          The edge proxy adds the token to what this page asks, and the broker did not accept it. The operator of the
          proxy has to check its <code>BROKER_TOKEN_READ</code>.
        </p>
        <button type="button" onClick={() => window.location.reload()}>
          Try again
        </button>
      </main>
    )
  const hadOne = currentToken() !== null
  return (
    <main class="sheet">
      <h1>{hadOne ? 'This token is not valid' : 'Read token'}</h1>
      <p role={hadOne ? 'alert' : undefined}>
        {hadOne
          ? 'The broker did not accept it: it is mistyped, or was replaced.'
          : 'The broker answers only with a token. The one for reading is enough: the console writes nothing.'}
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const token = text.trim()
          if (token === '') return
          signIn(token, { remember })
          void queries.resetQueries()
        }}
      >
        <label class="field">
          Token
          {/* Not a password of this site: password managers should not offer to save it. */}
          <input
            ref={input}
            type="password"
            autoComplete="off"
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </label>
        <label class="check">
          <input type="checkbox" checked={remember} onChange={() => setRemember(!remember)} /> Keep it until this tab is
          closed
        </label>
        <p class="faint">
          It stays in the memory of this page, and is forgotten when the page is loaded anew, unless kept.
        </p>
        <button type="submit" class="main">
          Go on
        </button>
      </form>
    </main>
  )
}
