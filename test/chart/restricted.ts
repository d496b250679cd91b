/** The Pod Security Standard `restricted` (Kubernetes 1.34), which includes `baseline`. */
import type { Json } from './rendered.ts'

const VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
]
const SECCOMP = ['RuntimeDefault', 'Localhost']

/** Violations of the standard by a pod; empty if there are none. */
export function faults(spec: Json): string[] {
  const found: string[] = []
  const forbid = (isBroken: boolean, rule: string) => void (isBroken && found.push(rule))
  const pod = spec.securityContext ?? {}
  for (const name of ['hostNetwork', 'hostPID', 'hostIPC']) forbid(spec[name] === true, name)
  for (const volume of spec.volumes ?? [])
    for (const kind of Object.keys(volume).filter((key) => key !== 'name'))
      forbid(!VOLUMES.includes(kind), `volume ${kind}`)
  forbid((pod.sysctls ?? []).length > 0, 'sysctls')
  for (const container of [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])]) {
    const own = container.securityContext ?? {}
    const setting = (name: string) => own[name] ?? pod[name]
    const forbidHere = (isBroken: boolean, rule: string) => forbid(isBroken, `${container.name}: ${rule}`)
    forbidHere(own.privileged === true, 'privileged')
    forbidHere(own.allowPrivilegeEscalation !== false, 'allowPrivilegeEscalation')
    forbidHere(setting('runAsNonRoot') !== true, 'runAsNonRoot')
    forbidHere(setting('runAsUser') === 0, 'runAsUser')
    forbidHere(!SECCOMP.includes(setting('seccompProfile')?.type), 'seccompProfile')
    forbidHere(!(own.capabilities?.drop ?? []).includes('ALL'), 'capabilities are kept')
    forbidHere(
      (own.capabilities?.add ?? []).some((name: string) => name !== 'NET_BIND_SERVICE'),
      'capabilities are added',
    )
    forbidHere((own.procMount ?? 'Default') !== 'Default', 'procMount')
    forbidHere(
      (container.ports ?? []).some((port: Json) => port.hostPort),
      'hostPort',
    )
  }
  return found
}
