"""What goes wrong outside: damaged files, full disks, killed processes, others on the machine."""
