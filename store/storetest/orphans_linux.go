package storetest

import (
	"os/exec"
	"syscall"
)

// EndWithTests has a program stop when this process ends, also when it is killed. The
// kernel goes by the thread that starts the program: Go ends only threads that a goroutine
// stays locked to, which no test does.
func EndWithTests(program *exec.Cmd) {
	if program.SysProcAttr == nil {
		program.SysProcAttr = &syscall.SysProcAttr{}
	}
	program.SysProcAttr.Pdeathsig = syscall.SIGTERM
}
