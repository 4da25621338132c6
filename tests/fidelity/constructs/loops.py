# SPDX-License-Identifier: Apache-2.0
def leaves(n):
    for i in range(n):
        if i == 1:
            continue
        if i == 3:
            break
        print('body', i)
    else:
        print('else is not reached')
    for i in range(2):
        pass
    else:
        print('else', i)
    while n:
        n -= 1
        if n == 2:
            return n
    else:
        return 'none'


print(leaves(5), leaves(1))
for x in 'ab': print(x)
i = 0
while i < 1: i += 1; print(i)
i = 0
while True:
    i += 1
    try:
        if i < 3:
            continue
        break
    finally:
        print('finally', i)


def nested():
    found = []
    for a in range(3):
        for b in range(3):
            if b == a:
                break
            found.append((a, b))
        else:
            found.append(a)
            continue
        if a == 1:
            return found


print(nested())
for a, (b, *c) in [(1, (2, 3, 4)), (5, (6,))]:
    print(a, b, c)


class Target:
    pass


t = Target()
for t.x in range(2):
    print(t.x)
d = {}
for d['k'] in range(2):
    pass
print(d)
for j in range(3):
    del j
print('j' in globals())
for multi in (
    1,
    2,
):
    print(
        multi,
        end=';\n',
    )
while (value := i) > 0:
    i -= 1
print(value)


def left_with(text):
    with open('/dev/null') as file:
        return (
            'of {name} '
            '{text}'
        ).format(
            name=file.name,
            text=text,
        )


def left_finally(text):
    try:
        return (
            text
            .upper()
        )
    finally:
        print('finally')


def left_loop(text):
    for _ in range(2):
        return (
            text
            .upper()
        )


print(left_with('a'), left_finally('a'), left_loop('a'))
