package main

import "syscall"

// childAttributes puts a child into a process group of its own (Ctrl-C is for the supervisor alone) and has the kernel kill it when the
// supervisor dies, however that happens.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
