/** Small hooks. Preact has the store hook only in its compatibility layer for React, which the console does not use. */
import { useEffect, useRef, useState } from 'preact/hooks'

/** Renders the component again when the value of a store changes. */
export function useSyncExternalStore<T>(subscribe: (listener: () => void) => () => void, snapshot: () => T): T {
  const [value, setValue] = useState(snapshot)
  useEffect(() => {
    const update = () => setValue(() => snapshot())
    // The value may have changed between the render and this effect.
    update()
    return subscribe(update)
    // The functions of a store stay the same.
  }, [])
  return value
}

/** The value after it has not changed for some time, for example while the user types. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => {
    timer.current = setTimeout(() => setSettled(() => value), ms)
    return () => clearTimeout(timer.current)
  }, [value, ms])
  return settled
}

/** The current time in milliseconds. It advances in steps, so that ages on the page stay right. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return now
}

/** Whether a media query matches, for example a narrow screen. */
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
