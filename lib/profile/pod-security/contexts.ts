/** Security fields of pods and containers as they were reported, with null for those that were not set. */
import { isObject } from '../../json/objects.ts'
import type { ContainerContext, PodSecurity } from '../record/pod-security.ts'

/** The fields of a pod; if they are not known, all others are null. */
export type PodBlock = Omit<PodSecurity['pod'], 'failing'>

const NO_CONTAINER_CONTEXT: ContainerContext = {
  privileged: null,
  allowPrivilegeEscalation: null,
  runAsNonRoot: null,
  runAsUser: null,
  runAsGroup: null,
  readOnlyRootFilesystem: null,
  capabilitiesAdd: null,
  capabilitiesDrop: null,
  seccompProfileType: null,
}

const NO_POD_CONTEXT: PodBlock['securityContext'] = {
  runAsNonRoot: null,
  runAsUser: null,
  runAsGroup: null,
  fsGroup: null,
  seccompProfileType: null,
}

const NO_POD_FIELDS = {
  serviceAccountName: null,
  automountServiceAccountToken: null,
  hostNetwork: null,
  hostPID: null,
  hostIPC: null,
  hostUsers: null,
}

export const UNKNOWN_POD: PodBlock = { known: false, ...NO_POD_FIELDS, securityContext: NO_POD_CONTEXT }

export const containerContext = (stored: unknown): ContainerContext => filled(NO_CONTAINER_CONTEXT, stored)

/** An empty block is one that was not reported, or of which no field could be read. */
export const podBlock = (stored: unknown): PodBlock =>
  isObject(stored) && Object.keys(stored).length > 0
    ? {
        known: true,
        ...filled(NO_POD_FIELDS, stored),
        securityContext: filled(NO_POD_CONTEXT, stored.securityContext),
      }
    : UNKNOWN_POD

/** The keys of `unset` with their stored values, which have the right types (lib/images/security.ts). */
function filled<T extends object>(unset: T, stored: unknown): T {
  if (!isObject(stored)) return unset
  return Object.fromEntries(Object.keys(unset).map((key) => [key, stored[key] ?? null])) as T
}
