import sys
n=int(sys.argv[1]); step=int(sys.argv[2]) if len(sys.argv)>2 else n
l=[]
for i in range(0,n,step): l.append(bytearray(b'x')*(step<<20))
print("allocated", n)
