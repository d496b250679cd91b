/** Follows the flows of a filter while the page is shown. Each filter has a stream of its own. */
import { useEffect, useState } from 'preact/hooks'
import { addressOf, call, type Params } from '../../api/client.ts'
import { LIST_FIELDS } from './flow.ts'
import { Follow, type FollowState } from './follow.ts'

type FlowQuery = NonNullable<Params<'/flows'>['query']>

export interface Live {
  readonly follow: Follow
  readonly state: FollowState
}

/**
 * Null while the page is not live. `onPlace` is called when the list has to be read again up to the start of the
 * stream.
 */
export function useFollow(filter: FlowQuery, isLive: boolean, onPlace: () => void): Live | null {
  const [live, setLive] = useState<Live | null>(null)
  useEffect(() => {
    if (!isLive) return
    const open = (resume: string | null, signal: AbortSignal) => {
      const query = { ...filter, follow: true, fields: LIST_FIELDS.join(','), ...(resume !== null && { resume }) }
      return call(new Request(addressOf('/flows', { query }), { signal, headers: { accept: 'application/x-ndjson' } }))
    }
    const follow = new Follow({ open, onPlace })
    const show = () => setLive({ follow, state: follow.state })
    const onVisibility = () => (document.hidden ? follow.hide() : follow.show())
    const unsubscribe = follow.subscribe(show)
    document.addEventListener('visibilitychange', onVisibility)
    if (document.hidden) follow.hide()
    else follow.start()
    show()
    return () => {
      document.removeEventListener('visibilitychange', onVisibility)
      unsubscribe()
      follow.stop()
      setLive(null)
    }
  }, [isLive, JSON.stringify(filter)])
  return isLive ? live : null
}
