/** Two hooks that Preact has only in its layer for React, of which nothing else is needed. */
import { useEffect, useRef, useState } from 'preact/hooks'

/** Renders again when the value of a store outside of the components changes. */
export function useSyncExternalStore<T>(subscribe: (listener: () => void) => () => void, snapshot: () => T): T {
  const [value, setValue] = useState(snapshot)
  useEffect(() => {
    const update = () => setValue(() => snapshot())
    // It may have changed between the render and this effect.
    update()
    return subscribe(update)
    // The functions of a store do not change.
  }, [])
  return value
}

/** The value once it has not changed for some time, as while somebody types. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => {
    timer.current = setTimeout(() => setSettled(() => value), ms)
    return () => clearTimeout(timer.current)
  }, [value, ms])
  return settled
}

/** The time of now in milliseconds, which moves on in steps, so that ages on the page stay right. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return now
}

/** Whether a media query holds, such as that the screen is narrow. */
export function useMedia(query: string): boolean {
  const [holds, setHolds] = useState(() => window.matchMedia(query).matches)
  useEffect(() => {
    const media = window.matchMedia(query)
    const update = () => setHolds(media.matches)
    update()
    media.addEventListener('change', update)
    return () => media.removeEventListener('change', update)
  }, [query])
  return holds
}
