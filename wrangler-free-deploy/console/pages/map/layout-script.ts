/** Starts the worker of the layout, as Trusted Types let it. */
import workerUrl from './layout.worker.ts?worker&url'

/** The part of Trusted Types that is needed here; not all browsers have it. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL: (url: string) => string },
  ): { createScriptURL: (url: string) => URL }
}
const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
/** Lets one script of this build pass, and no other. */
const policy = trustedTypes?.createPolicy('map-layout', {
  createScriptURL: (url) => {
    if (url !== workerUrl) throw new TypeError('not the script of the layout')
    return url
  },
})

export const startLayout = (): Worker =>
  new Worker(policy?.createScriptURL(workerUrl) ?? workerUrl, { type: 'module', name: 'map-layout' })
