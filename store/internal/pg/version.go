package pg

import "math/rand/v2"

// maxVersionStep leaves nine thousand billion changes to a wallet.
const maxVersionStep = 1 << 20

// VersionStep is by how much a change advances the version of a wallet. It differs from
// change to change, so that two histories do not number their states alike: a standby that
// takes over without the last changes may make others in their place, and a node that
// remembers the lost ones has to find out.
func VersionStep() int64 { return 1 + rand.Int64N(maxVersionStep) }
