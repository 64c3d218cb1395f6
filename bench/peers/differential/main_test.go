package differential

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var (
	commands = flag.Int("differential.commands", 5000, "how many random commands each run gives to both servers")
	seed     = flag.Uint64("differential.seed", 1, "what the random commands are made from")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
