/** Whether gzip is accepted: by its own weight, else by that of `*`; a weight of zero refuses (RFC 9110, 12.5.3). */
export function acceptsGzip(value: string | undefined): boolean {
  const weights = new Map<string, boolean>()
  for (const part of value?.toLowerCase().split(',') ?? []) {
    const [coding = '', ...parameters] = part.split(';').map((text) => text.trim())
    weights.set(coding, !parameters.some((one) => /^q\s*=\s*0(\.0*)?$/.test(one)))
  }
  return weights.get('gzip') ?? weights.get('x-gzip') ?? weights.get('*') ?? false
}
