#!/bin/bash
echo -10 > /proc/self/autogroup
exec 9>/tmp/w/land.lock; flock 9
cd /tmp/w/dsc2; QUICK_NOW=1 exec /tmp/w/quick sbx_binary sbx_with_faults sbx_probe sbx-docs units_test sbx_process_swapped sbx_process_transfer
