/** Starts the layout worker under the Trusted Types policy of the page. */
import workerUrl from './layout.worker.ts?worker&url'

/** The needed part of the Trusted Types API, which not all browsers have. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL: (url: string) => string },
  ): { createScriptURL: (url: string) => URL }
}
const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
/** Allows the worker script of this build and no other. */
const policy = trustedTypes?.createPolicy('map-layout', {
  createScriptURL: (url) => {
    if (url !== workerUrl) throw new TypeError('not the script of the layout')
    return url
  },
})

export const startLayout = (): Worker =>
  new Worker(policy?.createScriptURL(workerUrl) ?? workerUrl, { type: 'module', name: 'map-layout' })
