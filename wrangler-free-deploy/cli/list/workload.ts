/** Commands about one workload: `NAMESPACE/KIND/NAME`, or `KIND/NAME` with a namespace. */
import { EXIT, Failure } from '../failure.ts'
import { valued } from '../flags.ts'

/** The part of a route that names a workload. */
export const WORKLOAD_PATH = '{namespace}/{kind}/{name}'

export const workloadArgument = {
  placeholder: 'NAMESPACE/KIND/NAME',
  brief: 'A workload, such as shop/Deployment/api; with --namespace its KIND/NAME.',
} as const

export const namespaceOfWorkload = valued('NAME', 'The namespace of KIND/NAME.')

/** @throws Failure for words that name no workload */
export function workloadOf(namespace: string | undefined, words: string): readonly string[] {
  const parts = [...(namespace === undefined ? [] : [namespace]), ...words.split('/')]
  // A path loses segments of dots.
  if (parts.length === 3 && parts.every((part) => !/^\.{0,2}$/.test(part))) return parts
  throw new Failure('expected NAMESPACE/KIND/NAME, or --namespace and KIND/NAME', EXIT.usage)
}

/** The segments of a route about this workload. */
export const pathOfWorkload = (route: string, namespace: string | undefined, words: string): string[] =>
  route
    .replace(WORKLOAD_PATH, 'WORKLOAD')
    .split('/')
    .slice(1)
    .flatMap((segment) => (segment === 'WORKLOAD' ? workloadOf(namespace, words) : [segment]))
