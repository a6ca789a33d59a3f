cd /tmp/w/dsc2
/tmp/w/in timeout 300 python3 -c "
import sys,os
" 
export PYTHONPATH=/tmp/w/src/tests/harness
T=$(grep -l . build/test/tests/session/CTestTestfile.cmake)
/tmp/w/in timeout 280 ctest --test-dir build/test -C slow -L slow -R 'session\.swaps\.slow' -j3 --output-on-failure
