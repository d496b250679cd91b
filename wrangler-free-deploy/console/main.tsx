import { render } from 'preact'

render(<h1>Telemetry console</h1>, document.getElementById('root')!)
