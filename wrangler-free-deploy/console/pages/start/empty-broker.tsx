/** The start page of a broker without data: it tells how data arrives. */
import { href } from '../../place.ts'

export function EmptyBroker() {
  return (
    <>
      <h1>No data has arrived yet</h1>
      <p class="lead">The broker works. It stores what others post, and nobody has posted anything.</p>
      <div class="cards">
        <section class="card" aria-labelledby="agents">
          <h2 id="agents">Agents</h2>
          <p>
            One on each node posts its pods, their flows, syscalls, files that ran, CPU and memory. They need the
            address of this broker and the ingest token.
          </p>
          <p class="faint">
            See <code>docs/install.md</code>, and <code>docs/clients.md</code> for what they post.
          </p>
        </section>
        <section class="card" aria-labelledby="scanners">
          <h2 id="scanners">Scanners</h2>
          <p>
            They post reports of vulnerabilities, SBOMs and results of signature checks for the digests of images, with
            the supply chain token.
          </p>
          <p class="faint">
            See <code>docs/clients.md</code>: Vulnerabilities, SBOMs and Attestations.
          </p>
        </section>
        <section class="card" aria-labelledby="here">
          <h2 id="here">What can be seen now</h2>
          <p>
            <a href={href(['health'])}>Health</a> shows whether posts arrive and are refused, and{' '}
            <a href={href(['nodes'])}>Nodes</a> lists the first node as soon as it posts.
          </p>
        </section>
      </div>
    </>
  )
}
