//go:build !linux

package main

import "syscall"

// childAttributes puts a child into a process group of its own. Here nothing kills it when the supervisor itself is killed with SIGKILL.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
