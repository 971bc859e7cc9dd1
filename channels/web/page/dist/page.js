var Aa=Object.defineProperty;var qr=(e,t)=>{for(var n in t)Aa(e,n,{get:t[n],enumerable:!0})};var q,Vr,Ta,De,Fn,Rt,Zr,Ot,Kr,Mn,Pn,Fa,it=Symbol.for("pv"),Jt={},Xt=[],Pa=/^m(i|n|o|s|text|space)$/,Bn=Array.isArray,Gr=Xt.slice,Re=Object.assign;function Le(e){
e&&e.parentNode&&e.remove()}function It(e,t,n,r,s){var i={type:e,props:t,key:n,ref:r,__k:null,__:null,__b:0,__e:null,__c:null,constructor:it,__v:s||++Vr,__i:-1,__u:0};return!s&&q.vnode&&q.
vnode(i),i}function Yr(){return{current:null}}function g(e){return e.children}function le(e,t){this.props=e,this.context=t,this.__g=0}function Ae(e,t){if(t==null)
return e.__&&Ae(e.__,e.__i+1);for(var n;t<e.__k.length;t++)if((n=e.__k[t])&&n.__e)return n.__e;return typeof e.type!="function"||e.props.__P?null:Ae(e)}function Ma(e){
var t,n=e.__v,r=n.__e,s=[],i=[],a=e.__P;a&&((t=Re({constructor:it},n)).__v=n.__v+1,q.vnode&&q.vnode(t),$n(a,t,n,e.__n,a.namespaceURI,32&n.__u?[r]:null,s,r||Ae(n),
32&n.__u,i),t.__v=n.__v,t.__.__k[t.__i]=t,oo(s,t,i),n.__=n.__e=null,t.__e!=r&&Qr(t))}function Qr(e){if((e=e.__)&&e.__c&&!e.props.__P)return e.__e=null,e.__k.some(
function(t){return t&&(e.__e=t.__e)}),Qr(e)}function Hr(e){(8&e.__g||(e.__g|=8,De.push(e),Rt++))&&Fn==q.debounceRendering||((Fn=q.debounceRendering)||queueMicrotask)(
eo)}function eo(){try{for(var e,t=1;De.length;)De.length>t&&De.sort(Zr),e=De.shift(),t=De.length,8&e.__g&&Ma(e)}finally{(Rt=De.length)&&(Fn||queueMicrotask)(eo)}}
function to(e,t,n,r,s,i,a,l,c,u,d){var m,h,p,f,k,w,x=r.__k||Xt,y=t.length;for(c=Ba(n,t,x,c,y),m=0;m<y;m++)(p=n.__k[m])!=null&&(h=~p.__i&&x[p.__i]||Jt,p.__i=m,w=
$n(e,p,h,s,i,a,l,c,u,d),f=p.__e,(h.ref!=p.ref||8&h.__u)&&(h.ref&&On(h.ref,null,p,h),p.ref&&d.push(p.ref,p.__c||f,p)),k=k||f,4&p.__u?(c=no(p,c,e,!h.__v),h.__e&&(h.
__e=null)):typeof p.type=="function"&&w!==void 0?c=w:f&&(c=f.nextSibling),p.__u&=-21);return n.__e=k,c}function Ba(e,t,n,r,s){var i,a,l,c,u,d,m,h,p,f=n.length,k=f,
w=0,x=0,y=e.__k=Array(s);for(i=0;i<s;i++)(a=t[i])!=null&&typeof a!="boolean"&&typeof a!="function"?(typeof a!="object"||a.constructor===String?a=y[i]=It(null,a):
Bn(a)?a=y[i]=It(g,{children:a}):a.constructor===it&&a.__b?a=y[i]=It(a.type,a.props,a.key,a.ref,a.__v):y[i]=a,c=i+w,a.__=e,a.__b=e.__b+1,l=null,~(u=a.__i=$a(a,n,
c,k))&&(k--,(l=n[u])&&(l.__u|=2)),l&&l.__v?(a.__u|=16,u==c-1?w--:u==c+1?w++:u!=c&&(u>c?w--:w++,x=1)):(~u||(s>f?w--:s<f&&w++),typeof a.type!="function"&&(a.__u|=
4))):y[i]=null;if(x){for(d=[],m=[],i=0;i<s;i++)if((a=y[i])&&16&a.__u){for(w=0,h=d.length;w<h;)d[p=w+h>>1]<a.__i?w=p+1:h=p;d[w]=a.__i,m[i]=w+1}for(w=d.length;i--;)
m[i]&&(m[i]==w?w--:y[i].__u|=4)}if(k)for(i=0;i<f;i++)!(l=n[i])||2&l.__u||(l.__e==r&&(r=Ae(l)),In(l,l));return r}function no(e,t,n,r){var s,i,a,l;if(typeof e.type==
"function"){if(e.props.__P)return t;if(s=e.__k)for(i=0;i<s.length;i++)s[i]&&(s[i].__=e,t=no(s[i],t,n,!1));return t}for(t&&!t.parentNode&&(t=Ae(e))&&!t.parentNode&&
(t=null),a=e.__e,l=t;l&&l.nodeType==8;)l=l.nextSibling;for(a!=l&&(!r&&n.moveBefore&&a.parentNode?n.moveBefore(a,t):n.insertBefore(a,t||null)),t=a;(t=t&&t.nextSibling)&&
t.nodeType==8&&!t.data.startsWith("$s"););return t}function $a(e,t,n,r){var s,i=e.key,a=e.type,l=t[n],c=l&&!(2&l.__u);if(l===null&&i==null||c&&i==l.key&&a==l.type)return n;if(r>(c?1:0)){for(s=n-1;s>=0;s--)if((l=
t[s])&&!(2&l.__u)&&i==l.key&&a==l.type)return s;for(s=n+1;s<t.length;s++)if((l=t[s])&&!(2&l.__u)&&i==l.key&&a==l.type)return s}return-1}function jr(e,t,n){n==null&&
(n=""),t[0]=="-"?e.setProperty(t,n):e[t]=n}function $t(e,t,n,r,s){var i,a;if(t=="style")if(typeof n=="string")e.style.cssText=n;else{if(typeof r=="string"&&(e.style.
cssText=r=""),r)for(t in r)n&&t in n||jr(e.style,t);if(n)for(t in n)r&&n[t]==r[t]||jr(e.style,t,n[t])}else if(t[0]=="o"&&t[1]=="n")typeof n!="function"&&(n=null),
typeof r!="function"&&(r=null),(e.__e||(e.__e={}))[t]=n,n&&r||(a=Pn[t]||(Pn[t]=Oa(t)),(e.__a||(e.__a={}))[t]=Mn,i=t!=(t=t.replace(Kr,"$1")),(t=t.slice(2))[0]<"a"&&
(t=t.toLowerCase()),n?e.addEventListener(t,a,i):e.removeEventListener(t,a,i));else{if(s=="http://www.w3.org/2000/svg")t=t.replace(/xlink(H|:h)/,"h").replace(/sName$/,
"s");else if(t!="width"&&t!="height"&&t!="href"&&t!="list"&&t!="form"&&t!="tabIndex"&&t!="download"&&t!="rowSpan"&&t!="colSpan"&&t!="role"&&t!="popover"&&t in e)
try{return void(e[t]=n??"")}catch{}if(typeof n=="function")return;n==null||n===!1&&t[4]!="-"?e.removeAttribute(t):e.setAttribute(t,t=="popover"&&n==1?"":n)}}function Oa(e){
return function(t){var n=this.__e;if(n){if(n=n[e],t[Ot]==null)t[Ot]=Mn++;else if(t[Ot]<this.__a[e])return;return n(q.event?q.event(t):t)}}}function $n(e,t,n,r,s,i,a,l,c,u){
var d,m,h,p,f,k,w,x,y,D,C,M,F,N,Z,Ee,be,_e,he=t.type;if(t.constructor!==it)return null;128&n.__u&&(c=32&n.__u,d=n.__c.__z)&&(t.__u|=c,m=i=[],d.nodeType==8?l=Lt(
d,i):i.push(d),l=i[0]||l),(d=q.__b)&&d(t);e:if(typeof he=="function"){h=a.length;try{if(x=t.props,y=(d=he.prototype)&&d.render,D=(d=he.contextType)&&r[d.__c],C=
d?D?D.props.value:d.__:r,(p=n.__c)?(t.__c=p,2&p.__g&&(p.__g|=1)):(y?t.__c=p=new he(x,C):(t.__c=p=new le(x,C),p.constructor=he,p.render=La),D&&D.sub(p),p.state||
(p.state={}),p.__n=r,p.__g|=8,p.__h=[],p.__k=[]),y&&(p.__s||(p.__s=p.state),he.getDerivedStateFromProps&&(p.__s==p.state&&(p.__s=Re({},p.__s)),Re(p.__s,he.getDerivedStateFromProps(
x,p.__s)))),f=p.props,k=p.state,p.__v=t,n.__c){if(x!==f&&y&&!he.getDerivedStateFromProps&&p.componentWillReceiveProps&&p.componentWillReceiveProps(x,C),t.__v==n.
__v&&!(8&p.__g)||!(4&p.__g)&&p.shouldComponentUpdate&&p.shouldComponentUpdate(x,p.__s,C)===!1){t.__v!=n.__v&&(p.props=x,p.state=p.__s,p.__g&=-9),t.__e=n.__e,t.__k=
n.__k,t.__k.some(function(de){de&&(de.__=t)}),Xt.push.apply(p.__h,p.__k),p.__k=[],p.__h.length&&a.push(p),l=Ae(n);break e}p.componentWillUpdate&&p.componentWillUpdate(
x,p.__s,C),y&&p.componentDidUpdate&&p.__h.push(function(){p.componentDidUpdate(f,k,w)})}else y&&!he.getDerivedStateFromProps&&p.componentWillMount&&p.componentWillMount(),
y&&p.componentDidMount&&p.__h.push(p.componentDidMount);p.context=C,p.props=x,p.__P=e,p.__g&=-5,M=q.__r,F=y?25:0;do p.__g&=-9,M&&M(t),d=p.render(p.props,p.state=
p.__s,p.context);while(8&p.__g&&++F<25);y&&(Xt.push.apply(p.__h,p.__k),p.__k=[]),p.state=p.__s,p.getChildContext&&(r=Re({},r,p.getChildContext())),y&&n.__c&&p.getSnapshotBeforeUpdate&&
(w=p.getSnapshotBeforeUpdate(f,k)),N=d&&d.type===g&&d.key==null?d.props.children:d,x.__P&&(d=l,s=(e=x.__P).namespaceURI,c=i=null,n.props&&n.props.__P!=e&&(n.__k.
some(function(de){de&&In(de,de)}),n.__k=null),l=n.__k?Ae(n,0):null),l=to(e,Bn(N)?N:[N],t,n,r,s,i,a,l,c,u),x.__P&&(t.__e=null,l=d),t.__u&=-161,m&&m.some(Le),p.__h.
length&&a.push(p),1&p.__g&&(p.__g&=-4)}catch(de){if(a.length=h,t.__v=null,c||i)if(de&&de.then){if(t.__u|=128|c,i){for(~(be=i.indexOf(l||void 0))||(be=i.length);(_e=
i[be-1])&&_e.nodeType==8;)be--;for(;be<i.length;be++)if(_e=i[be])if(i[be]=null,Z){if(_e==Ee)break}else{if(_e.nodeType!=8)break;_e.data.startsWith("$s")&&(Ee=Lt(
Z=_e))}}if(!Z){for(;l&&l.nodeType==8&&l.nextSibling;)l=l.nextSibling;Z=l}(d=Lt(Z=t.__c.__z||(t.__c.__z=Z)))?(t.__e=Z,l=d):t.__e=l,l=l&&l.nextSibling}else i&&i.some(
Le);else t.__e=n.__e;t.__k||(t.__k=n.__k||[]),de&&de.then||ro(t),q.__e(de,t,n)}}else l=t.__e=Ia(n.__e,t,n,r,s,i,a,c,u,e);return(d=q.diffed)&&d(t),l}function Lt(e,t){
if(e&&e.nodeType==8&&e.data.startsWith("$s"))for(var n=1;e=e.nextSibling;){if(e.nodeType==8){if(e.data.startsWith("$s"))n++;else if(e.data.startsWith("/$s")&&!--n)
return e}t&&t.push(e)}}function ro(e){e&&(e.__c&&(e.__c.__g|=4),e.__k&&e.__k.some(ro))}function oo(e,t,n){for(var r=0;r<n.length;)On(n[r++],n[r++],n[r++]);q.__c&&
q.__c(t,e),e.some(function(s){try{e=s.__h,s.__h=[],e.some(function(i){i.call(s)})}catch(i){q.__e(i,s.__v)}})}function Ia(e,t,n,r,s,i,a,l,c,u){var d,m,h,p,f,k,w,
x,y=n.props||Jt,D=t.props,C=t.type;if(C=="svg"?s="http://www.w3.org/2000/svg":C=="math"?s="http://www.w3.org/1998/Math/MathML":s||(s="http://www.w3.org/1999/xht\
ml"),i){for(d=0;d<i.length;d++)if((f=i[d])&&(C?f.localName==C:f.nodeType==3)){e=f,i[d]=null;break}}if(!e){if(x=u.ownerDocument||document,!C)return x.createTextNode(
D);e=x.createElementNS(s,C,D.is?D:u),l&&(q.__m&&q.__m(t,i),l=!1),i=null}if(C){if(u=C=="template"&&e.content||e,i=C=="textarea"&&D.defaultValue!=null?null:i&&Gr.
call(u.childNodes),!l&&i)for(y={},d=0;d<e.attributes.length;d++)y[(f=e.attributes[d]).name]=f.value;for(d in y)f=y[d],d=="dangerouslySetInnerHTML"?h=f:d=="child\
ren"||d in D||d=="value"&&"defaultValue"in D||d=="checked"&&"defaultChecked"in D||$t(e,d,null,f,s);for(d in D)f=D[d],d=="children"?p=f:d=="dangerouslySetInnerHT\
ML"?m=f:d=="value"?k=f:d=="checked"?w=f:l&&typeof f!="function"||y[d]===f||$t(e,d,f,y[d],s);m?(l||h&&(m.__html==h.__html||m.__html==e.innerHTML)||(e.innerHTML=m.
__html),t.__k=[]):(h&&(e.textContent=""),(C=="foreignObject"||s=="http://www.w3.org/1998/Math/MathML"&&Pa.test(C))&&(s="http://www.w3.org/1999/xhtml"),to(u,Bn(p)?
p:[p],t,n,r,s,i,a,i?i[0]:n.__k&&Ae(n,0),l,c),i&&i.some(Le)),l&&C!="textarea"||(d="value",C=="progress"&&k==null?e.removeAttribute(d):k==null||k===e[d]&&(C!="pro\
gress"||k)||$t(e,d,k,y[d],s),d="checked",w!=null&&w!=e[d]&&$t(e,d,w,y[d],s))}else y===D||l&&e.data==D||(e.data=D);return e}function On(e,t,n,r){try{typeof e=="f\
unction"?t?t.__x=e(t)||1:r&&(r=r.__c||r.__e)&&(t=r.__x)&&(r.__x=null,typeof t=="function"?t():e(null)):e.current=t}catch(s){q.__e(s,n)}}function In(e,t,n){var r,
s,i,a;if(q.unmount&&q.unmount(e),!(r=e.ref)||r.current&&r.current!=e.__e||On(r,null,t,e),r=e.__c){if(r.componentWillUnmount)try{r.componentWillUnmount()}catch(l){
q.__e(l,t)}r.__P=r.__n=null}if(r=e.__k)for(a=0;a<r.length;a++)r[a]&&In(r[a],t,typeof e.type!="function"||n&&!e.props.__P);!n&&(r=e.__c)&&(r=r.__z)&&(s=Lt(r,i=[]))&&
(r==e.__e&&i.some(Le),Le(s),Le(r)),n||Le(e.__e),e.__e=e.__c=e.__=null}function La(e,t,n){return this.constructor(e,n)}function so(e,t){var n,r,s,i;q.__&&q.__(e,
t),t.nodeType==9&&(t=t.documentElement),r=(n=e&&32&e.__u)?null:t.__k,t.__k=It(g,{children:[e]}),s=[],i=[],$n(t,t.__k,r||Jt,Jt,t.namespaceURI,r?null:t.firstChild?
Gr.call(t.childNodes):null,s,r?r.__e:t.firstChild,n,i),oo(s,t.__k,i),t.__k.props.children=null}q={__e:function(e,t,n,r){for(var s,i,a;t=t.__;)if((s=t.__c)&&!(1&s.__g)){s.__g|=4;try{if((a=(i=s.constructor)&&i.getDerivedStateFromError)&&s.setState(i.getDerivedStateFromError(
e)),s.componentDidCatch&&(s.componentDidCatch(e,r||{}),a=1),a&&8&s.__g)return void(s.__g|=2)}catch(l){e=l}}throw Rt=0,e}},Vr=0,Ta=function(e){return e!=null&&e.
constructor===it},le.prototype.setState=function(e,t){var n=this.__s;n&&n!=this.state||(n=this.__s=Re({},this.state)),typeof e=="function"&&(e=e(Re({},n),this.props)),
e&&(Re(n,e),this.__v&&(t&&this.__k.push(t),Hr(this)))},le.prototype.forceUpdate=function(e){this.__v&&(this.__g|=4,e&&this.__h.push(e),Hr(this))},le.prototype.render=
g,De=[],Rt=0,Zr=function(e,t){return e.__v.__b-t.__v.__b},Ot=Symbol(),Kr=/(PointerCapture)$|Capture$/i,Mn=0,Pn={},Fa=0;var He,G,Ln,io,Rn=Object.is,zt=0,go=[],Jn=[],K=q,ao=K.__b,lo=K.__r,co=K.diffed,uo=K.__c,po=K.unmount,fo=K.__;function Nt(e,t){K.__h&&K.__h(G,e,zt||t),zt=0;var n=G.
__H||(G.__H={__:[],__h:[]});return e>=n.__.length&&n.__.push({}),n.__[e]}function b(e){return zt=1,Ra(bo,e)}function Ra(e,t,n){var r=Nt(He++,2);if(r.t=e,!r.__c&&
(r.__=[n?n(t):bo(void 0,t),function(i){var a=(r.__N||r.__)[0],l=r.t(a,i);Rn(a,l)||(r.__N=[l,r.__[1]],r.__c.setState({}))}],r.__c=G,!G.__f)){G.__f=!0;var s=G.shouldComponentUpdate;
G.shouldComponentUpdate=function(i,a,l){var c=this.__H;if(!c)return!0;var u=!1,d=this.props!=i;if(c.__.some(function(h){h.__N&&(u=!0,Rn(h.__[0],h.__N[0])||(d=!0))}),
s){var m=s.call(this,i,a,l);return u?m||d:m}return!u||d}}return r.__}function P(e,t){var n=Nt(He++,3);!K.__s&&zn(n.__H,t)&&(n.__P=!0,n.__=e,n.u=t,G.__H.__h.push(
n))}function ye(e,t){var n=Nt(He++,4);!K.__s&&zn(n.__H,t)&&(n.__P=!1,n.__=e,n.u=t,G.__h.push(n))}function O(e){return zt=5,Ja(function(){return{current:e}},[])}function Ja(e,t){var n=Nt(He++,7);return zn(n.__H,t)&&(n.__=e(),n.__H=t),n.__}function Xa(){var e;do{for(;e=Jn.shift();)try{at(e)}catch(n){K.__e(n,{__:(e=e.__P)&&e.__v})}for(;e=go.shift();){var t=e.__H;if(e.__P&&t)try{t.__h.some(at),t.__h.
some(Xn),t.__h=[]}catch(n){t.__h=[],K.__e(n,e.__v)}}}while(Jn.length)}K.__b=function(e){G=null,ao&&ao(e)},K.__=function(e,t){e&&t.__k&&t.__k.__m&&(e.__m=t.__k.__m),
fo&&fo(e,t)},K.__r=function(e){lo&&lo(e),He=0;var t=(G=e.__c).__H;t&&(Ln==G?G.__h=[]:(t.__h.some(at),t.__h.some(Xn),He=0),t.__h=[],t.__.some(function(n){n.__N&&
(n.__=n.__N),n.u=n.__N=void 0})),Ln=G},K.diffed=function(e){co&&co(e);var t=e.__c;t&&t.__H&&(t.__H.__h.length&&ho(go.push(t)),t.__H.__.some(function(n){n.u&&(n.
__H=n.u)})),Ln=G=null},K.__c=function(e,t){t.some(function(n){try{n.__h.some(at),n.__h=n.__h.filter(function(r){return!r.__||Xn(r)})}catch(r){n.__h=[function(){
throw r}]}}),uo&&uo(e,t)},K.unmount=function(e){po&&po(e);var t,n,r=e.__c;r&&r.__H&&(r.__H.__.some(function(s){try{if(s.__P&&s.__c){if(n===void 0){for(n=e.__;n&&
(!n.__c||!n.__c.__P);)n=n.__;n=n&&n.__c}s.__P=n,ho(Jn.push(s))}else at(s)}catch(i){t=i}}),r.__H=void 0,t&&K.__e(t,r.__v))};var mo=typeof requestAnimationFrame==
"function";function za(e){var t,n=function(){clearTimeout(r),mo&&cancelAnimationFrame(t),setTimeout(e)},r=setTimeout(n,35);mo&&(t=requestAnimationFrame(n))}function ho(e){
e!=1&&io==K.requestAnimationFrame||((io=K.requestAnimationFrame)||za)(Xa)}function at(e){var t=G,n=e.__c;typeof n=="function"&&(e.__c=void 0,n()),G=t}function Xn(e){
var t=G;e.__c=e.__(),G=t}function zn(e,t){return!e||e.length!=t.length||t.some(function(n,r){return!Rn(n,e[r])})}function bo(e,t){return typeof t=="function"?t(
e):t}var se=class extends Error{constructor(n,r,s,i=0){super(s);this.status=n;this.code=r;this.retryAfter=i}status;code;retryAfter},ko=()=>{};function vo(e){ko=e}function oe(e,t={}){
let n=new URLSearchParams;for(let[s,i]of Object.entries(t))i!==void 0&&i!==""&&n.set(s,String(i));let r="/v1/"+e.map(encodeURIComponent).join("/");return n.size>
0?r+"?"+n.toString():r}function S(e,t={},n){return lt("GET",oe(e,t),void 0,{},n)}function H(e,t={},n,r={}){return lt("POST",oe(e,r),t,n?{"Idempotency-Key":n}:{})}
function Ut(e,t){return lt("PATCH",oe(e),t)}function ie(e,t){return lt("DELETE",oe(e),void 0,t?{"If-Match":`"${t}"`}:{})}function wo(e,t,n){return lt("PUT",oe(e),
t,{"If-Match":`"${n}"`})}async function lt(e,t,n,r={},s){let i={...r};e!=="GET"&&(i["Parley-Page"]="1"),n!==void 0&&(i["Content-Type"]="application/json");let a={
method:e,headers:i,credentials:"same-origin",redirect:"error"};n!==void 0&&(a.body=JSON.stringify(n)),s&&(a.signal=s);let l=await ct(t,a);if(!l.ok)throw await Je(
l);let c=await l.text();return c?JSON.parse(c):void 0}async function ct(e,t){try{return await fetch(e,{cache:"no-store",...t})}catch(n){throw t.signal?.aborted?
n:new se(0,"unreachable","Can't reach the server. Check that parley serve is running.")}}async function Je(e){let t="http_"+e.status,n=`The server responded wit\
h status ${e.status}.`;try{let r=await e.json();t=r.error?.code||t,n=r.error?.message||n}catch{}return e.status===401&&ko(),new se(e.status,t,n,Number(e.headers.
get("Retry-After"))||0)}function je(e){let t=e instanceof Error?e.message:String(e);return t.charAt(0).toUpperCase()+t.slice(1)}function _o(e){let[t="",...n]=e.replace(/^#?\/?/,"").split("/");try{return{view:decodeURIComponent(t),rest:n.map(decodeURIComponent)}}catch{return{view:"",rest:[]}}}
function W(e,...t){return"#/"+[e,...t].map(encodeURIComponent).join("/")}function Te(e,...t){location.hash=W(e,...t)}function yo(){let[e,t]=b(()=>_o(location.hash));
return ye(()=>{let n=()=>t(_o(location.hash));return addEventListener("hashchange",n),()=>removeEventListener("hashchange",n)},[]),e}var Na=Symbol.for("pv"),Ua=0;function o(e,t,n,r,s,i){t||(t={});var a,l,c=t;if("ref"in c&&typeof e!="function")for(l in c={},t)l=="ref"?a=t[l]:c[l]=t[l];var u={type:e,props:c,key:n,ref:a,__k:null,
__:null,__b:0,__e:null,__c:null,constructor:Na,__v:--Ua,__i:-1,__u:0};return(s||i)&&(u.__source=s,u.__self=i),q.vnode&&q.vnode(u),u}function xo(){let[e,t]=b(!1),[n,r]=b(0),s=()=>t(!1);return P(()=>{if(!e)return;let i=l=>{l.target instanceof Element&&!l.target.closest("#views, .top")&&s()},a=l=>{
l.key==="Escape"&&(s(),document.querySelector(".menu-button")?.focus())};return addEventListener("pointerdown",i),addEventListener("focusin",i),addEventListener(
"keydown",a),()=>{removeEventListener("pointerdown",i),removeEventListener("focusin",i),removeEventListener("keydown",a)}},[e]),{open:e,waiting:n,toggle:()=>t(!e),
close:s,tell:r}}function So({menu:e}){return o("button",{type:"button",class:"button quiet menu-button","aria-expanded":e.open,"aria-controls":"views",onClick:e.
toggle,children:[o("svg",{class:"icon",viewBox:"0 0 24 24","aria-hidden":"true",focusable:"false",children:o("path",{d:"M4 6h16M4 12h16M4 18h16"})}),"Menu",e.waiting>
0&&!e.open&&o("span",{class:"badge warn",children:[e.waiting,o("span",{class:"away",children:" open requests"})]})]})}function Wa(e){let t=new Map;for(let n of e)
t.set(n.group,[...t.get(n.group)??[],n]);return[...t]}function Co({all:e,view:t,menu:n}){let r=O(null);P(()=>{r.current?.querySelector("[aria-current]")?.scrollIntoView(
{block:"nearest"})},[t]);let s=()=>{n.open&&(n.close(),document.getElementById("content")?.focus())};return o("nav",{ref:r,id:"views",class:"views"+(n.open?" op\
en":""),"aria-label":"Views",children:Wa(e).map(([i,a])=>{let l="views-"+i.toLowerCase();return o("div",{class:"views-group",children:[o("span",{id:l,class:"vie\
ws-title",children:i}),o("ul",{"aria-labelledby":l,children:a.map(c=>o("li",{children:o("a",{href:W(c.name),"aria-current":c===t?"page":void 0,onClick:s,children:[
c.title,c.beside&&o(c.beside,{tell:n.tell})]})},c.name))})]},i)})})}function _({children:e,onPress:t,look:n,disabled:r,label:s,onError:i}){let[a,l]=b(!1),c=async()=>{try{let u=t();if(!(u instanceof Promise))return;l(!0),await u}catch(u){
if(!i)throw u;i(u)}finally{l(!1)}};return o("button",{type:"button",class:"button "+(n??""),disabled:r||a,"aria-label":s,"aria-busy":a,onClick:()=>{c()},children:e})}
function I({error:e,again:t}){return e?o("div",{class:"note error",role:"alert",children:[o("span",{children:je(e)}),t&&o(_,{look:"quiet",onPress:t,children:"Tr\
y again"})]}):null}function ce({children:e}){return o("p",{class:"empty",children:e})}function fe(){return o("p",{class:"empty",role:"status",children:"Loading…"})}
function Y({label:e,columns:t,rows:n,id:r,empty:s}){return n.length===0?o(ce,{children:s}):o("div",{class:"table",tabIndex:0,role:"region","aria-label":e,children:o(
"table",{children:[o("caption",{class:"away",children:e}),o("thead",{children:o("tr",{children:t.map(i=>o("th",{scope:"col",class:i.number?"number":"",children:i.
title},i.title))})}),o("tbody",{children:n.map(i=>o("tr",{children:t.map(a=>o("td",{class:a.number?"number":"","data-title":a.title,children:a.cell(i)},a.title))},
r(i)))})]})})}function te({of:e}){return e?o("a",{href:W("why",e),"aria-label":"Why? "+e,children:"Why?"}):null}function Eo({label:e,children:t}){let n=O(null),
r=()=>{n.current&&(n.current.open=!1)};return P(()=>{let s=i=>{i.target instanceof Node&&!n.current?.contains(i.target)&&r()};return addEventListener("pointerdo\
wn",s),()=>removeEventListener("pointerdown",s)},[]),o("details",{ref:n,class:"menu",onKeyDown:s=>{s.key!=="Escape"||!n.current?.open||(r(),n.current.querySelector(
"summary")?.focus())},children:[o("summary",{class:"button quiet","aria-label":e,title:e,children:"⋯"}),o("div",{class:"menu-items",onClick:r,children:t})]})}
function xe({title:e,children:t,confirm:n,danger:r,onConfirm:s,onClose:i}){let a=O(null),l=O(!1),[c,u]=b(null);return ye(()=>{let m=a.current;return m?.showModal(),
()=>{l.current=!0,m?.close()}},[]),o("dialog",{ref:a,class:"dialog","aria-labelledby":"dialog-title",onClose:()=>l.current||i(),children:[o("h2",{id:"dialog-tit\
le",children:e}),o("div",{children:t}),o(I,{error:c}),o("div",{class:"actions",children:[o(_,{onPress:i,children:"Cancel"}),o(_,{look:r?"danger":"main",onPress:async()=>{
await s(),i()},onError:u,children:n})]})]})}function ge(){let e=O(null);return ye(()=>{let t=document.activeElement;return e.current?.scrollIntoView({block:"sta\
rt"}),e.current?.focus({preventScroll:!0}),()=>{t instanceof HTMLElement&&e.current?.contains(document.activeElement)&&t.focus()}},[]),e}function L(e,t){let[n,r]=b(
{}),[s,i]=b(0);return P(()=>{let a=new AbortController;return e(a.signal).then(l=>a.signal.aborted||r({value:l}),l=>a.signal.aborted||r(c=>({...c,error:l}))),()=>a.
abort()},[t,s]),{...n,again:()=>i(a=>a+1)}}function Do(){let e=/^#code=([^&]+)$/.exec(location.hash);return e?.[1]?(history.replaceState(null,"",location.pathname),decodeURIComponent(e[1])):""}async function Ao(e){
if(e)return To({code:e});try{return await S(["me"])}catch(t){if(t instanceof se&&(t.status===401||t.status===404))return null;throw t}}function To(e){return H([
"sign-ins"],e)}function qa(e){let t=/(?:#code=|^)([A-Z2-7]{26})$/.exec(e)?.[1];return t?{code:t}:{token:e}}function Fo({error:e,onDone:t}){let[n,r]=b(""),[s,i]=b(
e),a=async()=>{let l=n.trim();l&&(i(null),t(await To(qa(l))))};return o("main",{class:"signin",children:[o("h1",{children:"Parley"}),o("p",{children:["Run ",o("\
code",{children:"parley ui"})," on the server. It opens this page and signs you in."]}),o(I,{error:s}),o("form",{onSubmit:l=>{l.preventDefault(),a().catch(i)},children:[
o("label",{for:"given",children:"Or paste the link that it prints, or a token"}),o("input",{id:"given",type:"password",autocomplete:"off",value:n,onInput:l=>r(l.
currentTarget.value)}),o(_,{look:"main",disabled:!n.trim(),onPress:a,onError:i,children:"Sign in"})]})]})}var Po="en-US";function $(e){return e.toLocaleString(Po)}function R(e,t){return $(e)+" "+ut(e,t)}function ut(e,t){return e===1?t:t+"s"}function ue(e){return e===
0?"$0":Math.abs(e)<1e4?"$"+(e/1e6).toFixed(6).replace(/0+$/,""):Un(e,2)}function dt(e){return Math.abs(e)<1e4||e%1e4===0?ue(e):Un(e,4)}function Mo(e){let t=2;for(let n of e)
n>0&&n<100?t=6:n>0&&n<1e4&&(t=Math.max(t,4));return n=>Un(n,t)}function Un(e,t){return"$"+(e/1e6).toLocaleString(Po,{minimumFractionDigits:t,maximumFractionDigits:t})}
function Q(e){return e<1024?R(e,"byte"):e<1<<20?(e/1024).toFixed(1)+" KB":(e/(1<<20)).toFixed(1)+" MB"}function ae(e){if(e<1e3)return Math.max(0,Math.round(e))+
" ms";let t=Math.round(e/1e3);return t<60?t+" s":t<3600?Nn(t,60,"min",1,"s"):t<86400?Nn(t,3600,"h",60,"min"):Nn(t,86400,"d",3600,"h")}function Nn(e,t,n,r,s){let i=Math.
floor(e%t/r);return Math.floor(e/t)+" "+n+(i>0?` ${i} ${s}`:"")}var Ha=366;function Wn(e,t,n){let r=[];for(let s=e;s<=t&&r.length<Ha;s+=n)r.push(s);return r}function Se(e){
return new Date(e).toISOString().slice(0,10)}function Wt(e,t){return Wn(Date.parse(e),Date.parse(t),864e5).map(Se)}var Bo=10,ja=10<<20;function $o(e){let t=new Date,n=i=>String(i).padStart(2,"0"),s=`${`${t.getFullYear()}-${n(t.getMonth()+1)}-${n(t.getDate())}`}-${n(t.getHours())}${n(
t.getMinutes())}-${crypto.randomUUID().slice(0,4)}`;return["main","web",e.name,s].map(encodeURIComponent).join(":")}function pt(e,t,n){return{key:Oo(),session:e,
text:t,files:n,state:"sending",id:"",problem:""}}var Oo=()=>"page-"+crypto.randomUUID(),Va=5;async function Io(e,t){e.state="sending",e.problem="",t();let n=e.files.
map(s=>({name:s.name,data:s.data})),r={to:"agent",session:e.session,text:e.text,...n.length>0&&{files:n}};for(let s=1;;s++)try{let i=await H(["messages"],e.operator?
{session:e.session,as:"operator",text:e.text}:Ka(r),e.key);e.id=i.id,e.state="sent",t();return}catch(i){let a=i instanceof se?i:new se(0,"broken",String(i));if(!(a.
status===0||a.status===429||a.status>=500)||s===Va){e.state="refused",e.problem=a.message,t();return}await new Promise(c=>setTimeout(c,Math.min(Math.max(a.retryAfter*
1e3,400*2**s),8e3)))}}var Lo=1500,Za=12;async function Ro(e,t,n,r){for(let s=0;s<Za&&e.state==="sent";s++){if(await new Promise(i=>setTimeout(i,Math.min(Lo*1.5**
s,3e4))),r.aborted||n())return;try{let{destinations:i}=await S(["messages",e.id],{},r),a=i.find(l=>l.state==="failed");if(!a)continue;Object.assign(e,{state:"re\
fused",problem:a.error?.message??"It couldn't be delivered.",id:"",key:Oo()}),t()}catch{}}}var Jo=e=>!e.operator&&/^\s*\/[a-z]/i.test(e.text);async function Xo(e,t,n,r){
for(let s=0;e.state==="sent";s++){if(await new Promise(i=>setTimeout(i,Math.min(Lo*1.5**s,3e4))),r.aborted||n())return;try{let{destinations:i}=await S(["message\
s",e.id],{},r);if(!i.some(a=>a.state==="sent"))continue;e.state="done",t()}catch(i){if(i instanceof se&&i.status===404)return}}}function Ka(e){let[t="",n]=e.session.
split(":");return n&&t!=="main"?{...e,to:"agent:"+decodeURIComponent(t)}:e}function me(e){let[t="",n="",r="",s=""]=e.split(":").map(i=>{try{return decodeURIComponent(
i)}catch{return i}});return{agent:t,channel:n,chat:r,thread:s}}function Fe(e){let{channel:t,chat:n,thread:r}=me(e);return t==="web"?r||"First session":[n,r].filter(
Boolean).join(" / ")||e}function zo(e,t){if(!t.may.agent)return!1;let{channel:n,chat:r}=me(e);return n==="web"&&r===t.name||n==="console"&&t.owner}function No(e,t){
return t.may.admin&&!["","web","console","agent","webhook","heartbeat"].includes(me(e).channel)}var qn={get:e=>sessionStorage.getItem("draft "+e)??"",set:(e,t)=>{
t.trim()?sessionStorage.setItem("draft "+e,t):sessionStorage.removeItem("draft "+e)}},ft={get:e=>{try{return JSON.parse(sessionStorage.getItem("outbox "+e)??"[]").
map(n=>({...n,files:[],state:"sending",id:"",problem:""}))}catch{return[]}},set:(e,t)=>{let n=t.filter(r=>r.state==="sending"&&r.files.length===0).map(({key:r,session:s,
text:i,operator:a})=>({key:r,session:s,text:i,...a&&{operator:a}}));n.length>0?sessionStorage.setItem("outbox "+e,JSON.stringify(n)):sessionStorage.removeItem("\
outbox "+e)}};async function Uo(e,t){let n=[...t];for(let r of e){if(n.length===Bo)throw new Error(`You can attach up to ${Bo} files to a message.`);if(n.reduce(
(l,c)=>l+c.size,r.size)>ja)throw new Error("The files are too large. You can attach up to 10 MB to a message.");if(r.size===0)throw new Error(`The file ${r.name}\
 is empty.`);let i=await Ya(r),a={name:Ga(r.name,n.length),size:r.size,data:i};/^image\/(png|jpeg|gif|webp)$/.test(r.type)&&(a.preview=URL.createObjectURL(r)),n.
push(a)}return n}function Ga(e,t){return e.replace(/[\p{C}/\\]/gu,"_").slice(-100)||`file-${t+1}`}function Ya(e){return new Promise((t,n)=>{let r=new FileReader;
r.onload=()=>t(String(r.result).replace(/^[^,]*,/,"")),r.onerror=()=>n(new Error(`Can't read the file ${e.name}.`)),r.readAsDataURL(e)})}function qt({session:e,running:t,onSay:n,onStop:r}){let[s,i]=qo(e),[a,l]=b([]),[c,u]=b(null),[d,m]=b(!1),h=O(null),p=O(null);P(()=>{matchMedia("(pointer: fine)").
matches&&h.current?.focus()},[]);let f=w=>{u(null),Uo(w,a).then(l,u)},k=()=>{!s.trim()&&a.length===0||(n(s,a),i(""),l([]),u(null),h.current?.focus())};return o(
"form",{class:"composer"+(d?" over":""),"aria-label":"Write a message",onSubmit:w=>{w.preventDefault(),k()},onDragOver:w=>{w.preventDefault(),m(!0)},onDragLeave:()=>m(
!1),onDrop:w=>{w.preventDefault(),m(!1),f(w.dataTransfer?.files??[])},children:[o(I,{error:c}),o(el,{files:a,onRemove:w=>l(a.filter(x=>x!==w))}),o("div",{class:"\
composer-row",children:[o("input",{ref:p,type:"file",multiple:!0,hidden:!0,onChange:w=>{f([...w.currentTarget.files??[]]),w.currentTarget.value=""}}),o(_,{look:"\
quiet",label:"Add files",onPress:()=>p.current?.click(),children:o(Qa,{})}),o(Ho,{box:h,label:"Message",hint:"Message the agent",text:s,write:i,send:k,paste:f}),
t&&o(_,{look:"danger",onPress:r,children:"Stop"}),o(_,{look:"main",disabled:!s.trim()&&a.length===0,onPress:k,children:"Send"})]})]})}function Wo({session:e,channel:t,
onSay:n}){let[r,s]=qo(e),i=()=>{r.trim()&&(n(r),s(""))};return o("form",{class:"composer operator","aria-label":"Answer as the operator",onSubmit:a=>{a.preventDefault(),
i()},children:[o("p",{id:"operator-note",class:"operator-note",children:[o("strong",{children:"Answer as the operator."})," People on ",t," see your message, ma\
rked as yours. The agent knows of it, and doesn't answer it."]}),o("div",{class:"composer-row",children:[o(Ho,{label:"Answer as the operator",hint:"Answer as th\
e operator",about:"operator-note",text:r,write:s,send:i}),o(_,{look:"main",disabled:!r.trim(),onPress:i,children:"Send as operator"})]})]})}function qo(e){let[t,
n]=b(()=>qn.get(e));return[t,s=>{n(s),qn.set(e,s)}]}function Ho({label:e,hint:t,about:n,text:r,write:s,send:i,paste:a,box:l}){return o("textarea",{ref:l,rows:Math.
min(r.split(`
`).length,12),"aria-label":e,"aria-describedby":n,placeholder:t,value:r,onInput:c=>s(c.currentTarget.value),onKeyDown:c=>{c.key!=="Enter"||c.shiftKey||c.isComposing||
(c.preventDefault(),i())},onPaste:c=>{let u=[...c.clipboardData?.files??[]];!a||u.length===0||(c.preventDefault(),a(u))}})}function Qa(){return o("svg",{class:"\
icon",viewBox:"0 0 24 24","aria-hidden":"true",children:o("path",{d:"M20 11.5 12 19.5a5 5 0 0 1-7-7l8.5-8.5a3.4 3.4 0 0 1 4.8 4.8l-8.4 8.4a1.7 1.7 0 0 1-2.4-2.4\
l7.6-7.6"})})}function el({files:e,onRemove:t}){return e.length===0?null:o("ul",{class:"files","aria-label":"Files to send",children:e.map((n,r)=>o("li",{class:"\
file",children:[n.preview&&o("img",{src:n.preview,alt:""}),o("span",{children:n.name})," ",o("span",{class:"faint",children:Q(n.size)}),o("button",{type:"button",
class:"button quiet","aria-label":"Remove "+n.name,onClick:()=>t(n),children:"×"})]},r))})}var tl=/(?![ \n\t])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\u2800\ufffc\u{16fe4}]/gu;function v(e){return e.replace(tl,t=>{let n=t.codePointAt(
0)??0;return n>65535?"\\U"+n.toString(16).padStart(8,"0"):"\\u"+n.toString(16).padStart(4,"0")})}var Hn=6e4,jn=60*Hn,Vn=24*jn;function nl(e){let t=e.getTime()-Date.now(),n=Math.abs(t);return n<1e4?"just now":n>30*Vn?e.toLocaleDateString():t<0?jo(n)+" ago":"\
in "+jo(n)}function jo(e){if(e<Hn)return ae(e);if(e<jn)return ae(e-e%Hn);if(e<Vn)return ae(e-e%jn);let t=Math.round(e/Vn);return t===1?"1 day":t+" days"}function Vo(e){
let[,t]=b(0);P(()=>{let n=setInterval(()=>t(r=>r+1),e*1e3);return()=>clearInterval(n)},[e])}function Zn({at:e,says:t}){let n=new Date(e);return Number.isNaN(n.getTime())?
o("span",{children:e}):o("time",{dateTime:e,title:n.toLocaleString(),children:t(n)})}function T({at:e}){return Vo(10),o(Zn,{at:e,says:nl})}function pe({at:e}){return Vo(
1),o(Zn,{at:e,says:t=>ae(Math.max(1e3,Date.now()-t.getTime()))})}function Ve({at:e}){return o(Zn,{at:e,says:t=>t.toLocaleTimeString()})}function X({title:e,about:t,done:n,children:r}){let s=O(null),i=O(0);return P(()=>{!n?.said||n.turn===i.current||document.activeElement!==document.body||(i.current=
n.turn,s.current?.focus({preventScroll:!0}))}),o("div",{class:"page sheet",children:[o("h1",{ref:s,tabIndex:-1,children:e}),t&&o("p",{class:"about",children:t}),
n&&o(rl,{outcome:n}),r]})}function ne(){let[e,t]=b({said:"",error:null,turn:0});return{...e,say:r=>{t(s=>({said:"",error:null,turn:s.turn})),setTimeout(()=>t(s=>({
said:r,error:null,turn:s.turn+1})),50)},fail:r=>t(s=>({said:"",error:r,turn:s.turn}))}}function rl({outcome:e}){return o(g,{children:[o("p",{class:e.said?"note \
done":"away",role:"status",children:e.said}),o(I,{error:e.error})]})}function J({value:e,error:t,again:n}){return t?o(I,{error:t,again:n}):e===void 0?o(fe,{}):null}
function ee({read:e,rows:t,...n}){return o(g,{children:[o(J,{...e}),e.value!==void 0&&o(Y,{...n,rows:t(e.value)})]})}function re(e){let[t,n]=b(null);if(t===null)
return{ask:n,dialog:null};let{title:r,confirm:s,text:i,act:a}=e(t);return{ask:n,dialog:o(xe,{title:r,confirm:s,danger:!0,onConfirm:a,onClose:()=>n(null),children:i})}}
function Ht({label:e,value:t,set:n,children:r}){return o("form",{class:"filters",onSubmit:s=>s.preventDefault(),children:[o("label",{class:"long",children:[e,o(
"input",{type:"search",value:t,spellcheck:!1,onInput:s=>n(s.currentTarget.value)})]}),r]})}function jt(e,...t){let n=t.join(`
`).toLowerCase();return e.toLowerCase().split(/\s+/).every(r=>n.includes(r))}function U({title:e,children:t,wide:n,box:r}){let s="block-"+e.toLowerCase().replace(
/[^a-z]+/g,"-");return o("section",{ref:r,class:"block"+(n?" wide":""),"aria-labelledby":s,tabIndex:r?-1:void 0,children:[o("h2",{id:s,children:e}),t]})}function Pe({
title:e,children:t,close:n}){let r=ge();return o(U,{title:e,wide:!0,box:r,children:[t,o("div",{class:"after",children:o(_,{onPress:n,children:"Close"})})]})}function Ze({
after:e,next:t,go:n}){return!e&&!t?null:o("div",{class:"after",children:[e&&o(_,{onPress:()=>n(""),children:"First page"}),t&&o(_,{onPress:()=>n(t),children:"Ne\
xt page"})]})}function E({of:e}){return e?o("span",{class:"name",children:v(e)}):null}function V({of:e}){return e?o("a",{class:"name",href:W("chat",e),children:v(
e)}):null}function Vt({text:e}){let t=v(e).split("`");return t.length%2===0?o(g,{children:t.join("`")}):o(g,{children:t.map((n,r)=>r%2===1?o("code",{children:n},
r):n)})}function Me({of:e,label:t,above:n}){return o("div",{class:"preview",children:[n&&o("h3",{children:n}),o("pre",{tabIndex:0,role:"region","aria-label":t,children:o(
"span",{class:"preview-line",children:v(e)})})]})}function Zt({of:e,label:t}){return o(Me,{of:JSON.stringify(e,null,2),label:t})}function Ke({spent:e,kept:t=0,look:n}){
return o("svg",{class:"bar "+n,viewBox:"0 0 100 1",preserveAspectRatio:"none","aria-hidden":"true",focusable:"false",children:[o("rect",{class:"all",width:"100",
height:"1"}),t>0&&o("rect",{class:"kept",width:Math.min(100,e+t),height:"1"}),o("rect",{class:"spent",width:Math.min(100,e),height:"1"})]})}function B({look:e,children:t}){
return o("span",{class:"badge "+(e??""),children:t})}var Zo=["reset","turn_start","parked","turn_complete","turn_error","ask","ask_resolved","dead_letter","job","job_output","task","channel"],ol=2e4,Ko="parley-eve\
nts",Kn=class{followers=new Set;tabs=new BroadcastChannel(Ko);leave;constructor(){this.tabs.onmessage=t=>{let n=Zo.find(r=>r===t.data?.kind);n&&this.hear({...t.
data,kind:n})}}follow(t){return this.followers.add(t),this.followers.size===1&&document.addEventListener("visibilitychange",this.look),this.look(),()=>{this.followers.
delete(t),!(this.followers.size>0)&&(document.removeEventListener("visibilitychange",this.look),this.look())}}look=()=>{let t=this.followers.size>0&&!document.hidden;
t&&!this.leave?(this.leave=new AbortController,this.lead(this.leave.signal)):t||(this.leave?.abort(),this.leave=void 0)};async lead(t){for(;!t.aborted;){try{await navigator.
locks.request(Ko,{signal:t},()=>this.stream(t))}catch(n){if(!t.aborted)throw n;return}t.aborted||await new Promise(n=>setTimeout(n,ol))}}stream(t){return new Promise(
n=>{let r=new EventSource(oe(["events"]));for(let s of Zo)r.addEventListener(s,i=>this.tell(s,i.data));r.addEventListener("error",()=>{r.readyState===EventSource.
CLOSED&&(this.tell("reset","{}"),n())}),t.addEventListener("abort",()=>{r.close(),n()})})}tell(t,n){let{session:r,id:s}=JSON.parse(n),i={kind:t,...r&&{session:r},
...s&&{id:s}};this.tabs.postMessage(i),this.hear(i)}hear(t){for(let n of[...this.followers])n(t)}},Go=new Kn;function Yo(e){return Go.follow(e)}function Kt(e,t){
let n=O(t);n.current=t;let r=e.join(" ");P(()=>{if(!r)return;let s=new Set(["reset",...r.split(" ")]),i=0,a=Go.follow(({kind:l})=>{!s.has(l)||i||(i=setTimeout(()=>{
i=0,n.current()},250))});return()=>{a(),clearTimeout(i)}},[r])}var sl=5;function z(e,t,n,r=[],s=0){let[i,a]=b({key:t}),[l,c]=b(0),u=O(e);u.current=e;let d=()=>c(f=>f+1),m=O(0),h=O(0);return Kt(r,()=>{m.current||(m.current=setTimeout(
()=>{m.current=0,h.current=Date.now(),d()},Math.max(0,h.current+s-Date.now())))}),P(()=>()=>clearTimeout(m.current),[]),P(()=>{let f=new AbortController,k=!1,w=0,
x=async()=>{if(!(k||document.hidden)){k=!0,clearTimeout(w);try{let C=await u.current(f.signal);f.signal.aborted||a({key:t,value:C})}catch(C){f.signal.aborted||(a(
M=>M.key===t?{...M,error:C}:{key:t,error:C}),w=setTimeout(()=>{x()},Math.min(n,sl)*1e3))}finally{k=!1}}};x();let y=setInterval(()=>{x()},n*1e3),D=()=>{x()};return document.
addEventListener("visibilitychange",D),()=>{f.abort(),clearInterval(y),clearTimeout(w),document.removeEventListener("visibilitychange",D)}},[t,n,l]),{...i.key===
t?i:{key:t},again:d}}var Gn=10<<20,Gt=e=>/\.(png|jpe?g|gif|webp)$/i.test(e);function Yt({session:e,name:t}){let n=L(r=>il(e,t,r),t);return P(()=>()=>{n.value&&URL.revokeObjectURL(n.
value)},[n.value]),o(g,{children:[o(J,{...n}),n.value&&o("img",{src:n.value,alt:`Picture ${v(t)}`})]})}async function il(e,t,n){let r=await ct(oe(["sessions",e,
"files",t]),{signal:n});if(!r.ok)throw await Je(r);if(Number(r.headers.get("Content-Length"))>Gn)throw await r.body?.cancel(),new Error("This picture is too lar\
ge to show here. You can download it.");let s=await r.arrayBuffer(),i=al(new Uint8Array(s));if(!i)throw new Error("This file isn't a picture that the page can s\
how. You can download it.");return URL.createObjectURL(new Blob([s],{type:i}))}function al(e){let t=String.fromCharCode(...e.subarray(0,12));return t.startsWith(
`PNG\r

`)?"image/png":t.startsWith("ÿØÿ")?"image/jpeg":/^GIF8[79]a/.test(t)?"image/gif":/^RIFF[^]{4}WEBP/.test(t)?"image/webp":""}var ll=100;function Qo({session:e,close:t}){let[{folder:n,after:r},s]=b({folder:"",after:""}),[i,a]=b(null),l=z(m=>S(["sessions",e,"files"],{folder:n,after:r,limit:ll},
m),n+`
`+r,20,["turn_complete"]),c=ge(),u=m=>{a(null),s({folder:m,after:""}),c.current?.focus()},d=l.value;return o("section",{ref:c,class:"files-panel","aria-label":"\
Files of this session",tabIndex:-1,children:[o("div",{class:"between",children:[o(cl,{folder:n,open:u}),o(_,{look:"quiet",onPress:t,label:"Close the files",children:"\
Close"})]}),o(J,{...l}),d?.files.length===0&&o("p",{class:"none",children:n||r?"No files here.":"This session has no files yet."}),o("ul",{class:"items",children:d?.
files.map(m=>o("li",{children:o(ul,{session:e,file:m,open:u,look:a})},m.name))}),o(Ze,{after:r,next:d?.next,go:m=>s({folder:n,after:m})}),i&&o(dl,{session:e,name:i.
name,close:()=>a(null)},i.name)]})}function cl({folder:e,open:t}){let n=e?e.split("/"):[];return o("nav",{class:"trail","aria-label":"Folders",children:[o(_,{look:"\
quiet",disabled:!e,onPress:()=>t(""),children:"All files"}),n.map((r,s)=>o("span",{children:["/ ",o(_,{look:"quiet",disabled:s===n.length-1,onPress:()=>t(n.slice(
0,s+1).join("/")),children:v(r)})]},s))]})}function ul({session:e,file:t,open:n,look:r}){let s=v(t.name.slice(t.name.lastIndexOf("/")+1));if(t.folder)return o("\
span",{children:o(_,{look:"quiet",onPress:()=>n(t.name),label:`Open the folder ${s}`,children:[s,"/"]})});let i=Gt(t.name)&&t.bytes<=Gn;return o("div",{class:"f\
ile-line",children:[o("span",{class:"name",children:[s," ",o("span",{class:"faint",children:[Q(t.bytes),t.changed&&o(g,{children:[", changed ",o(T,{at:t.changed})]})]})]}),
i&&o(_,{onPress:()=>r(t),label:`Show ${s}`,children:"Show"}),o("a",{class:"button",href:oe(["sessions",e,"files",t.name]),download:"","aria-label":`Download ${s}`,
children:"Download"})]})}function dl({session:e,name:t,close:n}){let r=ge();return o("figure",{ref:r,class:"picture",tabIndex:-1,children:[o("figcaption",{class:"\
between",children:[o("span",{class:"name",children:v(t)})," ",o(_,{look:"quiet",onPress:n,label:"Close the picture",children:"Close"})]}),o(Yt,{session:e,name:t})]})}var Qt=class{turns=[];spoken=[];asks=new Map;tasks=new Map;jobs=new Map;besides=0;moves=0;ready=!1;apply(t,n){switch(t){case"snapshot":return this.replace(n);case"\
message":{let r=n;return this.speak(ts(r,r.delta??"",this.turns.at(-1)?.id??""))}}return this.take(t,n)?this.besides++:this.change(t,n),new Set}take(t,n){switch(t){case"\
tasks":return this.tasks=new Map(n.map(r=>[r.id,Yn(this.tasks.get(r.id),r)])),!0;case"jobs":return this.jobs=new Map(n.map(r=>[r.id,es(this.jobs.get(r.id),r)])),
!0;case"task":{let r=n;return this.tasks.set(r.id,Yn(this.tasks.get(r.id),r)),!0}case"job":{let r=n;return this.jobs.set(r.id,es(this.jobs.get(r.id),r)),!0}case"\
gone":return this.tasks.delete(n),this.jobs.delete(n),!0}return!1}besidesByTurn(){return ht([...this.tasks.values(),...this.jobs.values()],t=>t.turn)}change(t,n){
switch(t){case"ask":this.ask(n);return;case"ask_resolved":this.resolve(n);return}if(!n.turn)return;let r=this.turn(n.turn),{state:s}=r;r.version++,t.startsWith(
"block_")?fl(r,t,n):t.startsWith("tool_")?ns(r,t,n):gl(r,t,n),r.state!==s&&this.moves++}turn(t){let n=this.turns.findLast(s=>s.id===t);if(n)return n;let r=en(t);
return this.turns.push(r),this.moves++,r}replace(t){let n=new Map(this.turns.map(s=>[s.id,s]));this.turns=t.turns.map(s=>{let i=n.get(s.turn),a={...en(s.turn),causes:s.
causes,state:s.state};for(let h of s.waits??[])ns(a,"tool_progress",{call:h.call,delta:ml(h)});if(!i)return a;let{calls:l,error:c,usage:u,compacted:d,version:m}=i;
return{...a,calls:l,compacted:d,...c&&{error:c},...u&&{usage:u},version:m+1}});for(let s of t.blocks){let i=this.turns.find(a=>a.id===s.turn);i&&mt(i,{...Qn(s),
text:s.text??"",done:s.done??!0})}let r=this.leaveAside();this.spoken=pl(this.spoken,(t.messages??[]).map(s=>ts(s,s.text??"",s.after??"")));for(let s of t.asks??
[])this.asks.set(s.id,s);return this.ready=!0,this.moves++,r}leaveAside(){let t=new Set(this.turns.map(s=>s.id)),n=s=>!t.has(s.turn)&&!(s.after===""?t.size===0:
t.has(s.after)),r=new Set(this.spoken.filter(n).map(s=>s.operator?s.id:s.turn));this.spoken=this.spoken.filter(s=>!n(s));for(let[s,i]of this.asks)i.state!=="ope\
n"&&!t.has(i.turn)&&this.asks.delete(s);return r}speak(t){if(this.spoken.some(i=>i.id===t.id))return new Set;this.spoken.push(t);let n=this.turns.find(i=>i.id===
t.turn);if(n)return n.version++,new Set;let r=new Set(this.turns.map(i=>i.id)),s=new Set(this.spoken.filter(i=>!r.has(i.turn)).slice(0,-64));return this.spoken=
this.spoken.filter(i=>!s.has(i)),new Set([...s].map(i=>i.operator?i.id:i.turn))}ask(t){let n=this.asks.get(t.id);n&&n.state!=="open"||(this.asks.set(t.id,t),this.
touch(t.turn))}resolve(t){let n=t.ask?this.asks.get(t.ask):void 0;if(!n)return;let r=t.answer==="expired"||t.answer==="withdrawn"?t.answer:"answered";this.asks.
set(n.id,{...n,state:r,...t.answer&&{answer:t.answer},...t.by&&{by:t.by}}),this.touch(n.turn)}touch(t){let n=this.turns.find(r=>r.id===t);n&&n.version++}leave(t){
let n=this.turns.splice(0,Math.max(0,Math.min(this.turns.length-t,this.mayLeave()))),r=new Set(n.map(s=>s.id));for(let[s,i]of this.asks)r.has(i.turn)&&this.asks.
delete(s);for(let s of[this.tasks,this.jobs])for(let[i,a]of s)r.has(a.turn)&&s.delete(i);return new Set([...n.flatMap(s=>[...s.causes,...s.blocks.map(i=>i.cause)]),
...n.length>0?this.leaveAside():[]])}mayLeave(){let t=this.turns.findIndex(n=>n.state==="running"||n.state==="parked");return t<0?this.turns.length:t}running(){
return this.turns.findLast(t=>t.state==="running"||t.state==="parked")}};function ht(e,t){let n=new Map;for(let r of e){let s=n.get(t(r));s?s.push(r):n.set(t(r),
[r])}return n}function Yn(e,t){return e?.ended&&!t.ended?e:t}function es(e,t){let n=e&&!t.ended&&t.printed<e.printed?e:Yn(e,t);return n.output!==void 0||e?.output===
void 0||e.printed!==n.printed?n:{...n,output:e.output}}function en(e){return{id:e,causes:[],state:"running",blocks:[],calls:new Map,compacted:0,version:0}}function ts(e,t,n){
let r={name:e.name??""};return{id:e.call??"",turn:e.turn??"",text:t,after:n,...e.cut&&{cut:!0},...e.kind==="operator"&&{operator:r},...e.kind==="told"&&{told:r},
...e.command&&{command:e.command}}}function pl(e,t){let n=new Set(t.map(i=>i.id)),r=new Map,s="";for(let i of e)n.has(i.id)?s=i.id:!i.operator&&!i.told&&r.set(s,
[...r.get(s)??[],i]);return[...r.get("")??[],...t.flatMap(i=>[i,...r.get(i.id)??[]])]}function Qn(e){return{number:e.block??0,kind:e.kind??"text",text:"",tool:e.
tool??"",call:e.call??"",...e.input!==void 0&&{input:e.input},failed:e.is_error??!1,cut:e.cut??!1,cause:e.cause??"",name:e.name??"",done:!1,late:!1}}function mt(e,t){
let n=e.blocks.findIndex(r=>r.number>=t.number);n<0?e.blocks.push(t):e.blocks[n]?.number===t.number?e.blocks[n]=t:e.blocks.splice(n,0,t)}function fl(e,t,n){let r=n.
block??0;if(t==="block_reset"){e.blocks=e.blocks.filter(i=>i.number<r);return}if(delete e.retry,t==="block_start"){mt(e,Qn(n));return}let s=e.blocks.find(i=>i.number===
r);if(s||(s={...Qn(n),late:!0},mt(e,s)),t==="block_delta"){s.text+=n.delta??"";return}s.done=!0,n.input!==void 0&&(s.input=n.input),s.call=n.call||s.call,s.tool=
n.tool||s.tool,s.failed||=n.is_error??!1,s.cut||=n.cut??!1}function ns(e,t,n){let r=n.call??"",s=e.calls.get(r);if(s||(s={id:r,tool:n.tool??"",brief:"",progress:"",
state:"running"},e.calls.set(r,s)),!e.blocks.some(i=>i.call===r)){let i=e.blocks.find(a=>a.kind==="tool_use"&&a.call===""&&a.tool===n.tool);i&&(i.call=r)}switch(t){case"\
tool_start":s.brief=n.delta??"",s.state="running";break;case"tool_progress":s.progress=(s.progress+(n.delta??"")+`
`).slice(-hl);break;case"tool_end":s.state=n.error?"failed":"ended",n.error&&(s.error=n.error)}}function ml(e){let t=e.since?`has been away since ${new Date(e.since).
toLocaleString()}`:"has never been here";return`waiting for the node ${e.node}, which ${t}, until ${new Date(e.until).toLocaleString()} at the latest`}var hl=2e4;
function gl(e,t,n){switch(n.causes&&(e.causes=n.causes),t){case"turn_start":e.state="running";break;case"parked":e.state="parked";break;case"turn_complete":rs(e),
e.state=e.state==="cancelled"?"cancelled":"done",delete e.retry;break;case"turn_error":rs(e),e.state=n.error?.code==="cancelled"?"cancelled":"failed",n.error&&(e.
error=n.error),delete e.retry;break;case"retry":e.retry={attempt:n.attempt??2,after_ms:n.after_ms??0,...n.from&&{from:n.from},...n.to&&{to:n.to}};break;case"com\
paction":e.compacted++;break;case"usage":bl(e,n)}}function rs(e){e.blocks=e.blocks.filter(t=>t.done)}function bl(e,t){let n=e.usage??{calls:0,input:0,output:0,microdollars:0,
priced:!0,model:""};e.usage={calls:n.calls+1,input:n.input+(t.input??0),output:n.output+(t.output??0),microdollars:n.microdollars+(t.microdollars??0),priced:n.priced&&
t.microdollars!==void 0,model:t.model||n.model}}function os(e){let t=new Map(e.turns.map(n=>[n.id,n]));return e.spoken.filter(n=>{let r=t.get(n.turn);return!(r&&
kl(r).includes(ss(n.text)))&&!e.asks.has(n.id.split("#")[0]??"")})}var ss=e=>e.replace(/\s+/g,"");function kl(e){if(e.squeezed?.version!==e.version){let t=ss(e.
blocks.filter(n=>n.kind==="text").map(n=>n.text).join(""));e.squeezed={version:e.version,text:t}}return e.squeezed.text}var vl="200%",tn=class{parts=new Map;watcher;add(t,n,r){this.watcher??=new IntersectionObserver(s=>this.hear(s),{root:t.closest(".scroll"),rootMargin:`${vl} 0px`}),
this.parts.set(t,{fill:n,clear:r,near:!0,full:!0}),this.watcher.observe(t)}leave(t){this.watcher?.unobserve(t),this.parts.delete(t)}hear(t){for(let{target:n,isIntersecting:r}of t){
let s=this.parts.get(n);s&&((s.near||r)&&(this.parts.delete(n),this.parts.set(n,s)),s.near=r,s.near&&!s.full&&(s.full=!0,s.fill()))}this.clear()}clear(){let t=[
...this.parts.values()].filter(n=>n.full).length-10;for(let[n,r]of this.parts){if(t<=0)return;!r.full||r.near||wl(n)||(r.full=!1,r.clear(n.getBoundingClientRect().
height),t--)}}};function wl(e){let t=getSelection();return e.contains(document.activeElement)||e.querySelector("details[open]")!==null||t!==null&&!t.isCollapsed&&
t.containsNode(e,!0)}var is=45e3,as=400,_l=1e4,yl=1e4;async function nn(e,t,n){let r={last:""},s=as;for(;!n.aborted;){try{await xl(e,r,t,n,()=>{s=as}),t.state("away")}catch(i){if(n.
aborted)return;if(i instanceof se&&i.status>=400&&i.status<500&&i.status!==429){t.state("away",i.message);return}t.state("away")}await Sl(document.hidden?Number.
POSITIVE_INFINITY:s*(.75+Math.random()/2),n),s=Math.min(s*2,_l)}}async function xl(e,t,n,r,s){let i=new AbortController,a=()=>i.abort();r.addEventListener("abor\
t",a);let l=setTimeout(a,is),c=setTimeout(()=>{},0),u=()=>{clearTimeout(c),document.hidden&&(c=setTimeout(a,yl))};document.addEventListener("visibilitychange",u);
try{let d={Accept:"text/event-stream"};t.last&&(d["Last-Event-ID"]=t.last);let m=await fetch(e,{headers:d,signal:i.signal,credentials:"same-origin",cache:"no-st\
ore"});if(!m.ok||!m.body)throw await Je(m);s(),n.state("live");let h=new er((f,k,w)=>{f&&(t.last=f),n.event(k,JSON.parse(w))}),p=m.body.pipeThrough(new TextDecoderStream).
getReader();for(;;){let{done:f,value:k}=await p.read();if(f)return;clearTimeout(l),l=setTimeout(a,is),h.take(k)}}finally{clearTimeout(l),clearTimeout(c),document.
removeEventListener("visibilitychange",u),r.removeEventListener("abort",a),i.abort()}}var er=class{constructor(t){this.tell=t}tell;rest="";id="";type="";data=[];take(t){
let n=(this.rest+t).split(`
`);this.rest=n.pop()??"";for(let r of n)this.line(r.replace(/\r$/,""))}line(t){if(t===""){this.data.length>0&&this.tell(this.id,this.type,this.data.join(`
`)),this.id=this.type="",this.data=[];return}let n=t.indexOf(":");if(n===0)return;let r=n<0?t:t.slice(0,n),s=n<0?"":t.slice(n+1).replace(/^ /,"");r==="id"?this.
id=s:r==="event"?this.type=s:r==="data"&&this.data.push(s)}};function Sl(e,t){return new Promise(n=>{let r=()=>{clearTimeout(i),removeEventListener("online",r),
document.removeEventListener("visibilitychange",s),t.removeEventListener("abort",r),n()},s=()=>{document.visibilityState==="visible"&&r()},i=Number.isFinite(e)?
setTimeout(r,e):void 0;addEventListener("online",r),document.addEventListener("visibilitychange",s),t.addEventListener("abort",r)})}var rn=class{constructor(t,n,r){this.turns=t;this.changed=n;this.left=r}turns;changed;left;waiting=new Set;goesOn=!1;all(){return this.waiting.size===0?this.turns():
this.turns().filter(t=>!this.waiting.has(t.id))}replace(t){let n=r=>t.has(r.id)&&!this.waiting.has(r.id);this.waiting=new Set(this.turns().filter(r=>!n(r)).map(
r=>r.id)),this.drawMore(40)}drawMore(t){let n=this.turns().filter(r=>this.waiting.has(r.id));for(;t>0;){let r=n.pop();if(!r)break;this.waiting.delete(r.id),t-=Cl(
r)}n.length===0?this.waiting.clear():this.goesOn||this.goOn()}goOn(){this.goesOn=!0,requestAnimationFrame(()=>on(()=>{this.goesOn=!1,!this.left.aborted&&(this.drawMore(
20),this.changed())}))}};function Cl(e){return e.blocks.reduce((t,n)=>t+1+n.text.length/1e3,1)}function on(e){"requestIdleCallback"in window?requestIdleCallback(
e,{timeout:ls}):setTimeout(e,ls)}var ls=250;var El=120,Dl=10,sn=class{constructor(t,n){this.key=t;this.known=n}key;known;whole=!1;end=-1;rest=[];async read(t){let n=this.rest,r=this.end<0?await this.last(
t):this.end,s=0;for(;r>0&&s<=Dl;){let a=Math.max(0,r-El),l=await this.between(a,r,t);s+=l.filter(c=>c.kind==="turn_started").length,n=[...l,...n],r=a}this.end=r,
this.whole=r<=0;let i=this.whole?0:n.findIndex(a=>a.kind==="turn_started");return this.rest=i<0?n:n.slice(0,i),i<0?[]:nr(n.slice(i),this.key)}async last(t){let{
last:n}=await S(["sessions",this.key],{after:Number.MAX_SAFE_INTEGER,limit:1},t);return n}async between(t,n,r){let{entries:s}=await tr(this.key,t,n,r),i=this.known();
return s.filter(a=>!i.has(us(a.turn))&&!i.has(a.data?.of??""))}};async function tr(e,t,n,r){let s=[];for(let i=t;i<n;){let{entries:a,next:l}=await S(["sessions",
e],{after:i,limit:n-i},r);if(s.push(...a.filter(c=>c.n<=n)),l===void 0)return{entries:s,last:!0};i=l}return{entries:s,last:!1}}function nr(e,t,n=!1){let r=new Map,
s=[];for(let i of e){let a=i.data??{},l=r.get(i.turn),c=Al(i,a,t)??Tl(l,i,a,t);if(c&&s.push(c),!l){if(i.kind!=="turn_started"&&!(n&&cs(i,a)))continue;l={...en(i.
turn),state:"done",asks:[]},r.set(i.turn,l),s.push(l)}Fl(l,i,a,t),i.kind==="turn_done"&&(l.state=a.state??"done",l.state!=="done"&&(l.said=(a.outbound??[]).filter(
d=>d.text).map(d=>({id:d.id+"/0",turn:i.turn,text:d.text,after:i.turn}))));let u=cs(i,a);u&&mt(l,u)}for(let i of r.values())i.asks=i.asks?.filter(a=>a.state!=="\
open")??[];return s.filter(i=>!("blocks"in i)||i.blocks.length>0)}var us=e=>e.replace(/#told$/,""),ds=e=>["web","console"].includes(me(e).channel);function Al(e,t,n){
let r=e.kind==="notice"&&(t.code==="operator"||t.code==="told")?t.quotes?.[0]:void 0;if(r&&t.code==="told"){let s=r.name&&r.person?`${r.name} (${r.person})`:r.name||
r.person||"";return{id:us(e.cause??e.turn),turn:"",text:r.text,after:"",told:{name:s}}}return r?{id:t.of??e.turn,turn:"",text:r.text,after:"",operator:{name:r.name??
""}}:e.kind!=="command"||!t.reply?.text||!ds(n)?null:{id:t.reply.id+"/0",turn:e.turn,text:t.reply.text,after:"",command:t.name??""}}function Tl(e,t,n,r){if(t.kind!==
"tool_result"||n.code||!ds(r))return null;let s=e?.blocks.find(d=>d.kind==="tool_use"&&d.call===t.call);if(s?.tool!=="message")return null;let{channel:i,chat_id:a,
content:l}=s.input??{},c=me(r),u=[i,a].filter(Boolean).join(":");return typeof l!="string"||l.trim()===""||u!==`${c.channel}:${c.chat}${c.thread&&"/"+c.thread}`?
null:{id:`${t.turn}#${t.call}/0`,turn:"",text:l,after:""}}function Fl(e,t,n,r){let s=e.asks??[],i=(a,l)=>{e.asks=s.map(c=>a(c)?{...c,...l}:c)};t.kind==="turn_pa\
rked"&&(e.asks=[...s,...(n.asks??[]).flatMap(a=>Pl(a,e,r,t.at))]),t.kind==="ask_ended"&&i(a=>a.id===n.ask,{state:n.state,...n.answer&&{answer:n.answer},...t.person&&
{by:t.person}}),t.kind==="turn_done"&&i(a=>a.state==="open",{state:"withdrawn"})}function Pl({id:e,call:t,kind:n,expires:r,...s},i,a,l){if(n==="task"||n==="node")
return[];let c=i.blocks.find(m=>m.kind==="tool_use"&&m.call===t),u={id:e,kind:n,session:a,turn:i.id,person:"",at:l,expires:r,state:"open",...s.reason&&{reason:s.
reason}};if(n==="question")return[{...u,...s.question&&{question:s.question},...s.choices&&{choices:s.choices}}];let d=s.args??c?.input;return[{...u,tool:c?.tool??
"",arguments:d,shown:Ml(s.shown??"",s.shown_of??[],d)}]}function Ml(e,t,n){if(!e)return[];let r=Object.entries(n??{}).filter(([s])=>!t.includes(s));return[{text:e},
...r.map(([s,i])=>({name:s,text:typeof i=="string"?i:JSON.stringify(i)}))]}function cs(e,t){if(!["user","thinking","text","tool_use","tool_result"].includes(e.kind))
return null;let n={number:e.n,kind:e.kind,call:e.call??"",cause:e.cause??"",cut:!1,done:!0,late:!1};switch(e.kind){case"tool_use":return{...n,text:"",tool:t.name??
"",name:"",input:t.args,failed:!1};case"tool_result":return{...n,text:JSON.stringify(t.content??""),tool:"",name:"",failed:!!t.code};default:return{...n,text:t.
text??"",tool:"",name:t.name??"",failed:!1}}}var ps=50,fs=250,Bl=5e3,an=class{constructor(t,n,r,s){this.session=t;this.mayJobs=n;this.take=r;this.left=s;s.addEventListener("abort",Yo(i=>this.hear(i)))}session;mayJobs;take;left;wanted=new Set;begun=!1;reading=!1;readAll(){
this.begun=!0,this.want("all")}readJob(t){this.want("jobs/"+t)}hear({kind:t,session:n,id:r}){if(this.begun)if(t==="reset")this.readAll();else{if(n!==this.session)
return;t==="task"?this.want(r?"tasks/"+r:"all"):(t==="job"||t==="job_output")&&r&&this.want("jobs/"+r)}}want(t){t.startsWith("jobs/")&&!this.mayJobs||(this.wanted.
add(t),this.reading||this.readIn(fs))}readIn(t){this.reading=!0,setTimeout(()=>{this.read()},t)}async read(){let t=!1;for(let n of[...this.wanted]){if(this.left.
aborted)return;this.wanted.delete(n);try{await(n==="all"?this.readLists():this.readOne(n))}catch(r){if(this.left.aborted)return;let s=r instanceof se?r.status:0;
s===404?this.take("gone",n.slice(n.indexOf("/")+1)):s===0||s===429||s>=500?(this.wanted.add(n),t=!0):this.begun=!1}}this.reading=!1,this.wanted.size>0&&this.readIn(
t?Bl:fs)}async readLists(){let{tasks:t}=await S(["tasks"],{session:this.session,limit:ps},this.left);if(this.take("tasks",t),!this.mayJobs)return;let{jobs:n}=await S(
["jobs"],{session:this.session,limit:ps},this.left);this.take("jobs",n);for(let r of n)r.state==="running"&&this.wanted.add("jobs/"+r.id)}async readOne(t){let[n="",
r=""]=t.split("/");this.take(n==="tasks"?"task":"job",await S([n,r],{},this.left))}};var $l=3e3,Ol=8,Il=120,ms=90,Ll=2,ln=class{constructor(t,n,r,s,i){this.key=t;this.changed=n;let a=(l,c)=>{this.log.apply(l,c),this.draw()};this.work=new an(t,s,
a,this.left.signal),this.messages=[...i,...ft.get(t).filter(l=>!i.some(c=>c.key===l.key))],this.first=this.messages.filter(l=>!l.id),ft.set(t,this.messages),nn(
oe(["sessions",t,"events"]),{event:(l,c)=>{this.apply(l,c),l==="snapshot"&&this.work.readAll(),l==="snapshot"&&r&&this.readAsks(),this.draw()},state:(l,c="")=>{
this.live=l==="live",this.live&&this.begin(),this.away=c,this.draw()}},this.left.signal),setTimeout(()=>this.begin(),$l)}key;changed;log=new Qt;messages=[];live=!1;away="";problem="";earlier=[];first;past=null;left=new AbortController;drawn=new rn(
()=>this.log.turns,()=>this.draw(),this.left.signal);work;frame=0;trims=!1;begin(){if(!this.left.signal.aborted)for(let t of this.first.splice(0))this.send(t)}apply(t,n){
let r=this.log.turns,s=r[0]?.id;this.leave(this.log.apply(t,n)),t==="snapshot"&&this.drawn.replace(new Set(r.map(i=>i.id))),s!==void 0&&this.log.turns[0]?.id!==
s&&(this.earlier=[],this.past=null),this.log.turns.length>Il&&!this.trims&&this.log.mayLeave()>0&&(this.trims=!0,on(()=>this.trim()))}leave(t){t.size!==0&&(this.
messages=this.messages.filter(n=>!n.id||!t.has(n.id)),ft.set(this.key,this.messages))}trim(){if(this.left.signal.aborted)return;let t=this.log.turns.length;this.
earlier.length>0?this.earlier=this.earlier.slice(1):this.leave(this.log.leave(Math.max(ms,t-Ll))),this.past=null,this.draw(),this.trims=this.earlier.length>0||this.
log.turns.length<t&&this.log.turns.length>ms,this.trims&&requestAnimationFrame(()=>on(()=>this.trim()))}mayHaveEarlier(){return this.past?!this.past.whole:this.
log.turns.length>=Ol}async readEarlier(){let t=this.past??=new sn(this.key,()=>this.shown()),n=await t.read(this.left.signal);this.past===t&&(n.length>0&&(this.
earlier=[n,...this.earlier]),this.work.readAll(),this.draw())}shown(){let t=new Set;for(let n of[...this.log.turns,...this.log.spoken,...this.earlier.flat()])t.
add(n.id),"turn"in n&&t.add(n.turn);return t.delete(""),t}readJob=t=>this.work.readJob(t);close(){this.left.abort(),cancelAnimationFrame(this.frame)}say(t,n){this.
add(pt(this.key,t,n))}sayAsOperator(t){this.add({...pt(this.key,t,[]),operator:!0})}add(t){this.messages=[...this.messages,t],this.send(t)}async send(t){let n=()=>{
ft.set(this.key,this.messages),this.draw()};await Io(t,n);let r=()=>!this.pending().includes(t);t.operator?await Ro(t,n,r,this.left.signal):Jo(t)&&await Xo(t,n,
r,this.left.signal)}drop(t){this.messages=this.messages.filter(n=>n!==t),this.draw()}pending(){let t=this.messages.filter(r=>r.state!=="done");if(t.length===0)return t;
let n=new Set;for(let r of this.log.turns){for(let s of r.causes)n.add(s);for(let s of r.blocks)s.kind==="user"&&n.add(s.cause)}for(let r of this.log.spoken)n.add(
r.operator?r.id:r.turn);return t.filter(r=>!r.id||!n.has(r.id))}sentOf(t){return this.messages.filter(n=>n.id&&t.causes.includes(n.id)&&!t.blocks.some(r=>r.kind===
"user"&&r.cause===n.id))}aside(t,n){let r=new Map(this.messages.map(s=>[s.id,s]));return t.filter(s=>!n.has(s.turn)).map(s=>{let i=s.turn?r.get(s.turn):void 0;return r.
delete(s.turn),i?{message:i,spoken:s}:{spoken:s}})}async readAsks(){try{let{asks:t}=await S(["asks"],{session:this.key},this.left.signal);for(let n of t)this.log.
apply("ask",n);this.problem=""}catch(t){if(this.left.signal.aborted)return;this.problem="Couldn't load the open requests: "+je(t)}this.draw()}draw(){this.frame||
(this.frame=requestAnimationFrame(()=>{this.frame=0,this.changed()}))}};function cn(e){let t=e.shown??[];return(t.length>0||e.arguments===void 0?t:[{text:JSON.stringify(e.arguments,null,2)}]).map(r=>({...r,text:v(r.text)}))}function hs(e){
return e.reduce((t,n)=>t+n.text.split(`
`).length,0)}function Ge({parts:e,tool:t,most:n=1/0}){let r=n,s=[];for(let i of e){if(r<=0)break;let a=i.text.split(`
`).slice(0,r);r-=a.length,s.push({part:i,lines:a})}return o("div",{class:"preview",children:s.map(({part:i,lines:a})=>{let l=i.name&&v(i.name);return o("div",{children:[
l&&o("h3",{children:l}),o("pre",{tabIndex:0,role:"region","aria-label":l||"What would run",children:a.map((c,u)=>o(Jl,{text:c,marked:!i.name&&Rl(i.text,t)},u))})]},
i.name??"")})})}function Rl(e,t){return t==="write_file"?!/^[^\n]*(a new file|all of it):\n/.test(e):t==="edit_file"||t==="apply_patch"}function Jl({text:e,marked:t}){
let n="";return t&&e.startsWith("+")?n="plus":t&&e.startsWith("-")?n="minus":t&&/^(@@|\*\*\*)/.test(e)&&(n="head"),o("span",{class:"preview-line "+n,children:e+
`
`})}function gs(e,t){if(t.owner)return"";let n=e.person==="web:"+t.name;return e.kind==="question"?n&&(t.may.agent||t.may.approve)?"":"Only an owner or the person w\
ho started this turn can answer.":n?"You started this turn yourself, so someone else needs to approve the call.":t.may.approve?"":"Your token needs the approve \
scope to decide this."}function un(e,t,n=""){return H(["asks",e.id],n?{answer:t,reason:n}:{answer:t})}function dn({ask:e}){return e.kind==="question"?o(g,{children:"The agent has a question"}):o(g,{children:[o("code",{children:v(e.tool??"A tool")})," needs appro\
val"]})}function pn({ask:e,me:t,most:n,onDone:r}){let s=gs(e,t);return o(g,{children:[e.reason&&o("p",{children:["Reason: ",v(e.reason)]}),e.kind==="question"?o(
zl,{ask:e,closed:s!=="",onDone:r}):o(Xl,{ask:e,closed:s!=="",most:n,onDone:r}),s&&o("p",{class:"note",children:s})]})}function Xl({ask:e,closed:t,most:n,onDone:r}){
let s=cn(e),i=hs(s),[a,l]=b(i<=n),[c,u]=b(""),[d,m]=b(""),[h,p]=b(null),f=v(e.tool??"the call"),k=async y=>r(await un(e,y)),w=y=>()=>a?k(y):m(y),x=async()=>r(await un(
e,"deny",c.trim()));return o(g,{children:[o(Ge,{parts:s,tool:e.tool,most:a?1/0:n}),!a&&o("div",{children:o(_,{onPress:()=>l(!0),children:["Show all ",i," lines"]})}),
o(I,{error:h}),!t&&o(g,{children:[o("div",{class:"decide",children:[o(_,{look:"main",onPress:w("approve"),onError:p,label:`Approve once: ${f}`,children:"Approve\
 once"}),o(_,{onPress:w("session"),onError:p,label:`Approve for this session: ${f}`,children:"Approve for this session"}),o("label",{class:"away",for:"reason-"+
e.id,children:"Reason for denying, which the agent sees"}),o("input",{id:"reason-"+e.id,placeholder:"Why not? (optional)",value:c,onInput:y=>u(y.currentTarget.value)}),
o(_,{look:"danger",onPress:x,onError:p,label:`Deny: ${f}`,children:"Deny"})]}),o("p",{class:"faint",children:"If you approve it for this session, exactly the sa\
me call runs there again without asking."})]}),d&&o(xe,{title:"You haven't seen all of it",confirm:"Approve anyway",onConfirm:()=>k(d),onClose:()=>m(""),children:[
"The call has ",i," lines. You see the first ",n,"."]})]})}function zl({ask:e,closed:t,onDone:n}){let[r,s]=b(""),[i,a]=b(null),l=async u=>n(await un(e,u)),c=()=>l(
r.trim());return o(g,{children:[o("p",{class:"question",children:v(e.question??"")}),o(I,{error:i}),!t&&e.choices&&e.choices.length>0&&o("div",{class:"decide",children:e.
choices.map((u,d)=>o(_,{onPress:()=>l(u),onError:a,children:v(u)},d))}),!t&&o("form",{class:"decide",onSubmit:u=>{u.preventDefault(),r.trim()&&c().catch(a)},children:[
o("label",{class:"away",for:"words-"+e.id,children:"Your answer"}),o("input",{id:"words-"+e.id,placeholder:"Answer in your own words",value:r,onInput:u=>s(u.currentTarget.
value)}),o(_,{disabled:!r.trim(),onPress:c,onError:a,children:"Answer"})]})]})}var Nl=15;function rr({ask:e,me:t}){let[n,r]=b(null),s=e.state==="open"&&n?n:e;if(s.state!=="open")return o(Ul,{ask:s,me:t});let i="ask-"+e.id;return o("div",{class:"\
ask open",role:"group","aria-labelledby":i,children:[o("div",{class:"ask-title",id:i,children:o(dn,{ask:e})}),o(pn,{ask:e,me:t,most:Nl,onDone:r}),o("div",{class:"\
faint",children:["Expires ",o(T,{at:e.expires})]})]})}function Ul({ask:e,me:t}){return o("details",{class:"ask ended",children:[o("summary",{children:[e.kind===
"question"?v(e.question??""):o("code",{children:v(e.tool??"")})," ",o("strong",{children:ql(e,t)})]}),e.reason&&o("div",{children:["Reason: ",v(e.reason)]}),e.kind===
"approval"&&o(Ge,{parts:cn(e),tool:e.tool})]})}var Wl={approve:"Approved",session:"Approved for this session",deny:"Denied"};function ql(e,t){if(e.state==="expi\
red")return"Expired: nobody answered in time";if(e.state==="withdrawn")return"Withdrawn";let n=e.by?e.by==="web:"+t.name?" by you":" by "+v(e.by):"",r=e.answer??
"";return(e.kind==="approval"?Wl[r]??"Answered":v(r))+n}function fn(e){switch(e.state){case"running":return["running",e.stopping?"stopping":"running"];case"exited":return[e.exit_code?"failed":"ok",`exit code ${e.exit_code??
0}`];case"stopped":return["over","stopped"];case"killed":return["failed","stopped at a limit"];case"failed":return["failed","couldn't be run"];default:return["u\
nknown","outcome unknown"]}}function mn({of:e,session:t}){return o(g,{children:["This ends ",o("code",{class:"name",children:v(e.command)}),t&&o(g,{children:[" \
of ",o("span",{class:"name",children:v(t)})]}),", which may leave its work half done. Parley tells its conversation."]})}function gt({text:e,language:t=""}){return o("div",{class:"code",children:[o("div",{class:"code-bar",children:[o("span",{children:t}),o("button",{type:"button",
onClick:r=>{let s=r.currentTarget;navigator.clipboard?.writeText(e).then(()=>{s.textContent="Copied"})},children:"Copy"})]}),o("pre",{tabIndex:0,children:o("cod\
e",{children:ks(e)})})]})}function bs({text:e}){return o(g,{children:[o("p",{class:"faint",children:"The rest of this text is too long to format."}),o("div",{class:"\
as-written",children:ks(e)})]})}var Hl=100,jl=200;function ks(e){let t=e.split(`
`),n=Hl;if(t.length<=n)return e;for(;t.length>n*jl;)n*=2;let r=[];for(let s=0;s<t.length;s+=n){let i=s+n<t.length?`
`:"";r.push(o("span",{class:"piece",children:t.slice(s,s+n).join(`
`)+i},s))}return r}function vs(e){return/^https?:/i.test(e)&&hn(e)}function hn(e){try{return/^(https?:\/\/|mailto:)/i.test(e)&&["http:","https:","mailto:"].includes(new URL(e).protocol)}catch{
return!1}}var ir=1,ar=2,ws=4,Vl=e=>({strong:ir,em:ar,s:ws})[e.type.replace(/_(open|close)$/,"")]??0;function lr(e,t,n){let r=new or(t).all;return r.length>0?sr(r,0,null,n):
[e]}var or=class e{all=[];written="";open=new Map;link=null;constructor(t){let n=[];for(let s of t)if(s.type==="link_open"){let i=s.info==="auto"||s.markup==="a\
utolink",a=s.attrGet("href")??"";n.push({to:a,isAuto:i,before:this.all.length}),this.link=hn(a)?{to:a}:null,this.written+=i?"":"["}else if(s.type==="link_close"){
let i=n.pop();i&&this.endLink(i)}else if(s.nesting!==0){let i=Vl(s);this.open.set(i,(this.open.get(i)??0)+s.nesting),this.written+=s.markup}else this.addToken(s);
let r=this.all.at(-1);r&&(r.written+=this.written)}endLink({to:t,isAuto:n,before:r}){this.link&&this.all.length===r&&this.add("text",t,"");let s=this.link!==null;
this.link=null,!n&&(s||t===""?this.written+=`](${t})`:this.add("text",` (${t})`,`](${t})`))}addToken(t){let{type:n,content:r,markup:s}=t;if(n==="softbreak"||n===
"hardbreak"||n==="html_inline"&&/^<br\s*\/?>$/i.test(r))this.addBreak(n==="html_inline"?r:`
`);else if(n==="code_inline"&&r.trim()!=="")this.add("code",r,s+r+s);else if(n==="code_inline")this.add("text",s+r+s,s+r+s);else if(n==="image")this.addImage(t);else
for(let[i,a]of r.split(`
`).entries())i>0&&this.addBreak(`
`),this.add("text",a,a)}addImage(t){let n=t.attrGet("src")??"",r=new e(t.children??[]).all.map(i=>i.text).join(""),s=`![${t.content}](${n})`;this.link?this.add(
"text",r,s):hn(n)?(this.link={to:n},this.add("text",r||n,s),this.link=null):this.add("text",n?`${r} (${n})`:r,s)}addBreak(t){this.all.push({kind:"break",text:`
`,styles:0,link:null,written:this.written+t}),this.written=""}add(t,n,r){if(r=this.written+r,this.written="",n===""){this.written=r;return}let s=0;for(let[a,l]of this.
open)l>0&&(s|=a);let i=this.all.at(-1);if(t==="text"&&i?.kind===t&&i.styles===s&&i.link===this.link){i.text+=n,i.written+=r;return}this.all.push({kind:t,text:n,
styles:s,link:this.link,written:r})}};function sr(e,t,n,r){let s=[],i=0;for(;i<e.length;){let a=e[i];if(a.kind==="text"&&(a.styles&~t)===0&&(a.link===null||a.link===
n)){s.push(a.text),i++;continue}if(r.left<=0){s.push(o("span",{class:"as-written",children:e.slice(i).map(h=>h.written).join("")}));break}r.left--;let[c,u]=[i,0],
d=(h,p)=>{let f=i;for(;f<e.length&&p(e[f]);)f++;f>c&&([c,u]=[f,h])};a.link!==null&&a.link!==n&&d(0,h=>h.link===a.link);for(let h of[ir,ar,ws])a.styles&~t&h&&d(h,
p=>(p.styles&h)!==0);if(c===i){s.push(a.kind==="break"?o("br",{}):o("code",{children:a.text})),i++;continue}let m=e.slice(i,c);s.push(u===0?o("a",{href:a.link?.
to,target:"_blank",rel:"noopener noreferrer",children:sr(m,t,a.link,r)}):Zl(u,sr(m,t|u,n,r))),i=c}return s}function Zl(e,t){return e===ir?o("strong",{children:t}):
e===ar?o("em",{children:t}):o("s",{children:t})}var cr={};qr(cr,{decode:()=>bt,encode:()=>Be,format:()=>Ye,parse:()=>kt});var _s={};function Kl(e){let t=_s[e];if(t)return t;t=_s[e]=[];for(let n=0;n<128;n++){let r=String.fromCharCode(n);t.push(r)}for(let n=0;n<e.length;n++){let r=e.
charCodeAt(n);t[r]="%"+("0"+r.toString(16).toUpperCase()).slice(-2)}return t}function gn(e,t){typeof t!="string"&&(t=gn.defaultChars);let n=Kl(t);return e.replace(
/(%[a-f0-9]{2})+/gi,function(r){let s="";for(let i=0,a=r.length;i<a;i+=3){let l=parseInt(r.slice(i+1,i+3),16);if(l<128){s+=n[l];continue}if((l&224)===192&&i+3<a){
let c=parseInt(r.slice(i+4,i+6),16);if((c&192)===128){let u=l<<6&1984|c&63;u<128?s+="��":s+=String.fromCharCode(u),i+=3;continue}}if((l&240)===224&&i+6<a){let c=parseInt(
r.slice(i+4,i+6),16),u=parseInt(r.slice(i+7,i+9),16);if((c&192)===128&&(u&192)===128){let d=l<<12&61440|c<<6&4032|u&63;d<2048||d>=55296&&d<=57343?s+="���":
s+=String.fromCharCode(d),i+=6;continue}}if((l&248)===240&&i+9<a){let c=parseInt(r.slice(i+4,i+6),16),u=parseInt(r.slice(i+7,i+9),16),d=parseInt(r.slice(i+10,i+
12),16);if((c&192)===128&&(u&192)===128&&(d&192)===128){let m=l<<18&1835008|c<<12&258048|u<<6&4032|d&63;m<65536||m>1114111?s+="����":(m-=65536,s+=String.
fromCharCode(55296+(m>>10),56320+(m&1023))),i+=9;continue}}s+="�"}return s})}gn.defaultChars=";/?:@&=+$,#";gn.componentChars="";var bt=gn;var ys={};function Gl(e){let t=ys[e];if(t)return t;t=ys[e]=[];for(let n=0;n<128;n++){let r=String.fromCharCode(n);/^[0-9a-z]$/i.test(r)?t.push(r):t.push("%"+("0"+
n.toString(16).toUpperCase()).slice(-2))}for(let n=0;n<e.length;n++)t[e.charCodeAt(n)]=e[n];return t}function bn(e,t,n){typeof t!="string"&&(n=t,t=bn.defaultChars),
typeof n>"u"&&(n=!0);let r=Gl(t),s="";for(let i=0,a=e.length;i<a;i++){let l=e.charCodeAt(i);if(n&&l===37&&i+2<a&&/^[0-9a-f]{2}$/i.test(e.slice(i+1,i+3))){s+=e.slice(
i,i+3),i+=2;continue}if(l<128){s+=r[l];continue}if(l>=55296&&l<=57343){if(l>=55296&&l<=56319&&i+1<a){let c=e.charCodeAt(i+1);if(c>=56320&&c<=57343){s+=encodeURIComponent(
e[i]+e[i+1]),i++;continue}}s+="%EF%BF%BD";continue}s+=encodeURIComponent(e[i])}return s}bn.defaultChars=";/?:@&=+$,-_.!~*'()#";bn.componentChars="-_.!~*'()";var Be=bn;function Ye(e){let t="";return t+=e.protocol||"",t+=e.slashes?"//":"",t+=e.auth?e.auth+"@":"",e.hostname&&e.hostname.indexOf(":")!==-1?t+="["+e.hostname+"]":t+=
e.hostname||"",t+=e.port?":"+e.port:"",t+=e.pathname||"",t+=e.search||"",t+=e.hash||"",t}function kn(){this.protocol=null,this.slashes=null,this.auth=null,this.port=null,this.hostname=null,this.hash=null,this.search=null,this.pathname=null}var Yl=/^([a-z0-9.+-]+:)/i,
Ql=/:[0-9]*$/,ec=/^(\/\/?(?!\/)[^\?\s]*)(\?[^\s]*)?$/,tc=["<",">",'"',"`"," ","\r",`
`,"	"],nc=["{","}","|","\\","^","`"].concat(tc),rc=["'"].concat(nc),xs=["%","/","?",";","#"].concat(rc),Ss=["/","?","#"],oc=255,Cs=/^[+a-z0-9A-Z_-]{0,63}$/,sc=/^([+a-z0-9A-Z_-]{0,63})(.*)$/,
Es={javascript:!0,"javascript:":!0},Ds={http:!0,https:!0,ftp:!0,gopher:!0,file:!0,"http:":!0,"https:":!0,"ftp:":!0,"gopher:":!0,"file:":!0};function ic(e,t){if(e&&
e instanceof kn)return e;let n=new kn;return n.parse(e,t),n}kn.prototype.parse=function(e,t){let n,r,s,i=e;if(i=i.trim(),!t&&e.split("#").length===1){let u=ec.exec(
i);if(u)return this.pathname=u[1],u[2]&&(this.search=u[2]),this}let a=Yl.exec(i);if(a&&(a=a[0],n=a.toLowerCase(),this.protocol=a,i=i.substr(a.length)),(t||a||i.
match(/^\/\/[^@\/]+@[^@\/]+/))&&(s=i.substr(0,2)==="//",s&&!(a&&Es[a])&&(i=i.substr(2),this.slashes=!0)),!Es[a]&&(s||a&&!Ds[a])){let u=-1;for(let f=0;f<Ss.length;f++)
r=i.indexOf(Ss[f]),r!==-1&&(u===-1||r<u)&&(u=r);let d,m;u===-1?m=i.lastIndexOf("@"):m=i.lastIndexOf("@",u),m!==-1&&(d=i.slice(0,m),i=i.slice(m+1),this.auth=d),u=
-1;for(let f=0;f<xs.length;f++)r=i.indexOf(xs[f]),r!==-1&&(u===-1||r<u)&&(u=r);u===-1&&(u=i.length),i[u-1]===":"&&u--;let h=i.slice(0,u);i=i.slice(u),this.parseHost(
h),this.hostname=this.hostname||"";let p=this.hostname[0]==="["&&this.hostname[this.hostname.length-1]==="]";if(!p){let f=this.hostname.split(/\./);for(let k=0,
w=f.length;k<w;k++){let x=f[k];if(x&&!x.match(Cs)){let y="";for(let D=0,C=x.length;D<C;D++)x.charCodeAt(D)>127?y+="x":y+=x[D];if(!y.match(Cs)){let D=f.slice(0,k),
C=f.slice(k+1),M=x.match(sc);M&&(D.push(M[1]),C.unshift(M[2])),C.length&&(i=C.join(".")+i),this.hostname=D.join(".");break}}}}this.hostname.length>oc&&(this.hostname=
""),p&&(this.hostname=this.hostname.substr(1,this.hostname.length-2))}let l=i.indexOf("#");l!==-1&&(this.hash=i.substr(l),i=i.slice(0,l));let c=i.indexOf("?");return c!==
-1&&(this.search=i.substr(c),i=i.slice(0,c)),i&&(this.pathname=i),Ds[n]&&this.hostname&&!this.pathname&&(this.pathname=""),this};kn.prototype.parseHost=function(e){
let t=Ql.exec(e);t&&(t=t[0],t!==":"&&(this.port=t.substr(1)),e=e.substr(0,e.length-t.length)),e&&(this.hostname=e)};var kt=ic;var mr={};qr(mr,{Any:()=>ur,Cc:()=>dr,Cf:()=>ac,P:()=>vt,S:()=>pr,Z:()=>fr});var ur=/[\0-\uD7FF\uE000-\uFFFF]|[\uD800-\uDBFF][\uDC00-\uDFFF]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?:[^\uD800-\uDBFF]|^)[\uDC00-\uDFFF]/,
dr=/[\0-\x1F\x7F-\x9F]/,ac=/[\xAD\u0600-\u0605\u061C\u06DD\u070F\u0890\u0891\u08E2\u180E\u200B-\u200F\u202A-\u202E\u2060-\u2064\u2066-\u206F\uFEFF\uFFF9-\uFFFB]|\uD804[\uDCBD\uDCCD]|\uD80D[\uDC30-\uDC3F]|\uD82F[\uDCA0-\uDCA3]|\uD834[\uDD73-\uDD7A]|\uDB40[\uDC01\uDC20-\uDC7F]/,
vt=/[!-#%-\*,-\/:;\?@\[-\]_\{\}\xA1\xA7\xAB\xB6\xB7\xBB\xBF\u037E\u0387\u055A-\u055F\u0589\u058A\u05BE\u05C0\u05C3\u05C6\u05F3\u05F4\u0609\u060A\u060C\u060D\u061B\u061D-\u061F\u066A-\u066D\u06D4\u0700-\u070D\u07F7-\u07F9\u0830-\u083E\u085E\u0964\u0965\u0970\u09FD\u0A76\u0AF0\u0C77\u0C84\u0DF4\u0E4F\u0E5A\u0E5B\u0F04-\u0F12\u0F14\u0F3A-\u0F3D\u0F85\u0FD0-\u0FD4\u0FD9\u0FDA\u104A-\u104F\u10FB\u1360-\u1368\u1400\u166E\u169B\u169C\u16EB-\u16ED\u1735\u1736\u17D4-\u17D6\u17D8-\u17DA\u1800-\u180A\u1944\u1945\u1A1E\u1A1F\u1AA0-\u1AA6\u1AA8-\u1AAD\u1B4E\u1B4F\u1B5A-\u1B60\u1B7D-\u1B7F\u1BFC-\u1BFF\u1C3B-\u1C3F\u1C7E\u1C7F\u1CC0-\u1CC7\u1CD3\u2010-\u2027\u2030-\u2043\u2045-\u2051\u2053-\u205E\u207D\u207E\u208D\u208E\u2308-\u230B\u2329\u232A\u2768-\u2775\u27C5\u27C6\u27E6-\u27EF\u2983-\u2998\u29D8-\u29DB\u29FC\u29FD\u2CF9-\u2CFC\u2CFE\u2CFF\u2D70\u2E00-\u2E2E\u2E30-\u2E4F\u2E52-\u2E5D\u3001-\u3003\u3008-\u3011\u3014-\u301F\u3030\u303D\u30A0\u30FB\uA4FE\uA4FF\uA60D-\uA60F\uA673\uA67E\uA6F2-\uA6F7\uA874-\uA877\uA8CE\uA8CF\uA8F8-\uA8FA\uA8FC\uA92E\uA92F\uA95F\uA9C1-\uA9CD\uA9DE\uA9DF\uAA5C-\uAA5F\uAADE\uAADF\uAAF0\uAAF1\uABEB\uFD3E\uFD3F\uFE10-\uFE19\uFE30-\uFE52\uFE54-\uFE61\uFE63\uFE68\uFE6A\uFE6B\uFF01-\uFF03\uFF05-\uFF0A\uFF0C-\uFF0F\uFF1A\uFF1B\uFF1F\uFF20\uFF3B-\uFF3D\uFF3F\uFF5B\uFF5D\uFF5F-\uFF65]|\uD800[\uDD00-\uDD02\uDF9F\uDFD0]|\uD801\uDD6F|\uD802[\uDC57\uDD1F\uDD3F\uDE50-\uDE58\uDE7F\uDEF0-\uDEF6\uDF39-\uDF3F\uDF99-\uDF9C]|\uD803[\uDD6E\uDEAD\uDED0\uDF55-\uDF59\uDF86-\uDF89]|\uD804[\uDC47-\uDC4D\uDCBB\uDCBC\uDCBE-\uDCC1\uDD40-\uDD43\uDD74\uDD75\uDDC5-\uDDC8\uDDCD\uDDDB\uDDDD-\uDDDF\uDE38-\uDE3D\uDEA9\uDFD4\uDFD5\uDFD7\uDFD8]|\uD805[\uDC4B-\uDC4F\uDC5A\uDC5B\uDC5D\uDCC6\uDDC1-\uDDD7\uDE41-\uDE43\uDE60-\uDE6C\uDEB9\uDF3C-\uDF3E]|\uD806[\uDC3B\uDD44-\uDD46\uDDE2\uDE3F-\uDE46\uDE9A-\uDE9C\uDE9E-\uDEA2\uDF00-\uDF09\uDFE1]|\uD807[\uDC41-\uDC45\uDC70\uDC71\uDEF7\uDEF8\uDF43-\uDF4F\uDFFF]|\uD809[\uDC70-\uDC74]|\uD80B[\uDFF1\uDFF2]|\uD81A[\uDE6E\uDE6F\uDEF5\uDF37-\uDF3B\uDF44]|\uD81B[\uDD6D-\uDD6F\uDE97-\uDE9A\uDFE2]|\uD82F\uDC9F|\uD836[\uDE87-\uDE8B]|\uD839\uDDFF|\uD83A[\uDD5E\uDD5F]/,
pr=/[\$\+<->\^`\|~\xA2-\xA6\xA8\xA9\xAC\xAE-\xB1\xB4\xB8\xD7\xF7\u02C2-\u02C5\u02D2-\u02DF\u02E5-\u02EB\u02ED\u02EF-\u02FF\u0375\u0384\u0385\u03F6\u0482\u058D-\u058F\u0606-\u0608\u060B\u060E\u060F\u06DE\u06E9\u06FD\u06FE\u07F6\u07FE\u07FF\u0888\u09F2\u09F3\u09FA\u09FB\u0AF1\u0B70\u0BF3-\u0BFA\u0C7F\u0D4F\u0D79\u0E3F\u0F01-\u0F03\u0F13\u0F15-\u0F17\u0F1A-\u0F1F\u0F34\u0F36\u0F38\u0FBE-\u0FC5\u0FC7-\u0FCC\u0FCE\u0FCF\u0FD5-\u0FD8\u109E\u109F\u1390-\u1399\u166D\u17DB\u1940\u19DE-\u19FF\u1B61-\u1B6A\u1B74-\u1B7C\u1FBD\u1FBF-\u1FC1\u1FCD-\u1FCF\u1FDD-\u1FDF\u1FED-\u1FEF\u1FFD\u1FFE\u2044\u2052\u207A-\u207C\u208A-\u208C\u20A0-\u20C1\u2100\u2101\u2103-\u2106\u2108\u2109\u2114\u2116-\u2118\u211E-\u2123\u2125\u2127\u2129\u212E\u213A\u213B\u2140-\u2144\u214A-\u214D\u214F\u218A\u218B\u2190-\u2307\u230C-\u2328\u232B-\u2429\u2440-\u244A\u249C-\u24E9\u2500-\u2767\u2794-\u27C4\u27C7-\u27E5\u27F0-\u2982\u2999-\u29D7\u29DC-\u29FB\u29FE-\u2B73\u2B76-\u2BFF\u2CE5-\u2CEA\u2E50\u2E51\u2E80-\u2E99\u2E9B-\u2EF3\u2F00-\u2FD5\u2FF0-\u2FFF\u3004\u3012\u3013\u3020\u3036\u3037\u303E\u303F\u309B\u309C\u3190\u3191\u3196-\u319F\u31C0-\u31E5\u31EF\u3200-\u321E\u322A-\u3247\u3250\u3260-\u327F\u328A-\u32B0\u32C0-\u33FF\u4DC0-\u4DFF\uA490-\uA4C6\uA700-\uA716\uA720\uA721\uA789\uA78A\uA828-\uA82B\uA836-\uA839\uAA77-\uAA79\uAB5B\uAB6A\uAB6B\uFB29\uFBB2-\uFBD2\uFD40-\uFD4F\uFD90\uFD91\uFDC8-\uFDCF\uFDFC-\uFDFF\uFE62\uFE64-\uFE66\uFE69\uFF04\uFF0B\uFF1C-\uFF1E\uFF3E\uFF40\uFF5C\uFF5E\uFFE0-\uFFE6\uFFE8-\uFFEE\uFFFC\uFFFD]|\uD800[\uDD37-\uDD3F\uDD79-\uDD89\uDD8C-\uDD8E\uDD90-\uDD9C\uDDA0\uDDD0-\uDDFC]|\uD802[\uDC77\uDC78\uDEC8]|\uD803[\uDD8E\uDD8F\uDED1-\uDED8]|\uD805\uDF3F|\uD807[\uDFD5-\uDFF1]|\uD81A[\uDF3C-\uDF3F\uDF45]|\uD82F\uDC9C|\uD833[\uDC00-\uDCEF\uDCFA-\uDCFC\uDD00-\uDEB3\uDEBA-\uDED0\uDEE0-\uDEF0\uDF50-\uDFC3]|\uD834[\uDC00-\uDCF5\uDD00-\uDD26\uDD29-\uDD64\uDD6A-\uDD6C\uDD83\uDD84\uDD8C-\uDDA9\uDDAE-\uDDEA\uDE00-\uDE41\uDE45\uDF00-\uDF56]|\uD835[\uDEC1\uDEDB\uDEFB\uDF15\uDF35\uDF4F\uDF6F\uDF89\uDFA9\uDFC3]|\uD836[\uDC00-\uDDFF\uDE37-\uDE3A\uDE6D-\uDE74\uDE76-\uDE83\uDE85\uDE86]|\uD838[\uDD4F\uDEFF]|\uD83B[\uDCAC\uDCB0\uDD2E\uDEF0\uDEF1]|\uD83C[\uDC00-\uDC2B\uDC30-\uDC93\uDCA0-\uDCAE\uDCB1-\uDCBF\uDCC1-\uDCCF\uDCD1-\uDCF5\uDD0D-\uDDAD\uDDE6-\uDE02\uDE10-\uDE3B\uDE40-\uDE48\uDE50\uDE51\uDE60-\uDE65\uDF00-\uDFFF]|\uD83D[\uDC00-\uDED8\uDEDC-\uDEEC\uDEF0-\uDEFC\uDF00-\uDFD9\uDFE0-\uDFEB\uDFF0]|\uD83E[\uDC00-\uDC0B\uDC10-\uDC47\uDC50-\uDC59\uDC60-\uDC87\uDC90-\uDCAD\uDCB0-\uDCBB\uDCC0\uDCC1\uDCD0-\uDCD8\uDD00-\uDE57\uDE60-\uDE6D\uDE70-\uDE7C\uDE80-\uDE8A\uDE8E-\uDEC6\uDEC8\uDECD-\uDEDC\uDEDF-\uDEEA\uDEEF-\uDEF8\uDF00-\uDF92\uDF94-\uDFEF\uDFFA]/,
fr=/[ \xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]/;var As=document.createElement("textarea");function hr(e){return e.replace(/&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});/g,t=>(As.innerHTML=t,As.
value))}var lc=class{src_Any=ur.source;src_Cc=dr.source;src_Z=fr.source;src_P=vt.source;src_ZPCc=[this.src_Z,this.src_P,this.src_Cc].join("|");src_ZCc=[this.src_Z,this.
src_Cc].join("|");cache={};opts={maxLength:1e4,urlAuth:!1,schema_names:[]};constructor(e={}){this.opts={...this.opts,...e}}set(e={}){return this.opts={...this.opts,
...e},this.cache={},this}escapeRE(e){return e.replace(/[.?*+^$[\]\\(){}|-]/g,"\\$&")}nestedPairRE(e,t,n=4){let r=this.escapeRE(e),s=this.escapeRE(t),i=`(?:(?!${this.
src_ZCc}|${r}|${s}).)`,a=`${r}${i}{0,1000}${s}`;for(let l=2;l<=n;l++)a=`${r}(?:${i}|${a}){0,1000}${s}`;return a}get_text_separators(){return this.cache.text_separators??=
/[><\uff5c]/}get_pseudo_letter(){return this.cache.src_pseudo_letter??=new RegExp(`(?:(?!${this.get_text_separators().source}|${this.src_ZPCc})${this.src_Any})`)}get_ipv4_addr(){
return this.cache.src_ip4??=new RegExp("(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9][0-9]|[0-9])[.]){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9][0-9]|[0-9])")}get_ipv6_addr(){
let e="[0-9A-Fa-f]{1,4}",t=`(?:(?:${e}:${e})|${this.get_ipv4_addr().source})`;return this.cache.src_ip6_addr??=new RegExp(`(?:(?:${e}:){6}${t}|::(?:${e}:){5}${t}\
|(?:${e})?::(?:${e}:){4}${t}|(?:(?:${e}:){0,1}${e})?::(?:${e}:){3}${t}|(?:(?:${e}:){0,2}${e})?::(?:${e}:){2}${t}|(?:(?:${e}:){0,3}${e})?::${e}:${t}|(?:(?:${e}:)\
{0,4}${e})?::${t}|(?:(?:${e}:){0,5}${e})?::${e}|(?:(?:${e}:){0,6}${e})?::)`)}get_ipv6_url_host(){return this.cache.src_ip6_host??=new RegExp(`\\[${this.get_ipv6_addr().
source}\\]`)}get_ipv6_mail_host(){return this.cache.src_ipv6_mail_host??=new RegExp(`\\[IPv6:${this.get_ipv6_addr().source}\\]`)}get_auth(){return this.cache.src_auth??=
new RegExp(`(?:(?:(?!${this.src_ZCc}|[@/\\[\\]()]).){1,50}@)?`)}get_port(){return this.cache.src_port??=new RegExp("(?::(?:6(?:[0-4]\\d{3}|5(?:[0-4]\\d{2}|5(?:[0-\
2]\\d|3[0-5])))|[1-5]?\\d{1,4}))?")}get_host_terminator(){return this.cache.src_host_terminator??=new RegExp(`(?=$|${this.get_text_separators().source}|${this.src_ZPCc}\
)(?!${this.opts["---"]?"-(?!--)|":"-|"}_|:\\d|\\.-|\\.(?!$|${this.src_ZPCc}))`)}get_path_terminator(){return this.cache.src_path_terminator??=new RegExp(`${this.
src_ZPCc}|${this.get_text_separators().source}`)}get_path(){return this.cache.src_path??=new RegExp(`(?:[/?#](?:${this.nestedPairRE("[","]")}|${this.nestedPairRE(
"(",")")}|${this.nestedPairRE("{","}")}|\\"(?:(?!${this.src_ZCc}|["]).){1,100}\\"|\\'(?:(?!${this.src_ZCc}|[']).){1,100}\\'|\\'(?=${this.get_pseudo_letter().source}\
|[-])|\\.{2,20}[:]?[a-zA-Z0-9%/&]|\\.(?!${this.src_ZCc}|[.]|$)|`+(this.opts["---"]?"\\-(?!--(?:[^-]|$))(?:-{0,19})|":"\\-{1,20}|")+`,(?!${this.src_ZCc}|$)|;(?!${this.
src_ZCc}|$)|\\!{1,20}(?!${this.src_ZCc}|[!]|$)|\\?(?!${this.src_ZCc}|[?]|$)|`+this.get_path_extra().source+`[\\\\/:%@#&=_~*]|(?!${this.get_path_terminator().source}\
).){1,${this.opts.maxLength}}|\\/)?`)}get_mail_name(){return this.cache.src_mail_name??=new RegExp("[-!#$%&'*+/=?^_`{|}~a-zA-Z0-9](?:[-!#$%&'*+/=?^_`{|}~a-zA-Z0\
-9]|[.](?=[-!#$%&'*+/=?^_`{|}~a-zA-Z0-9])){0,63}")}get_xn(){return this.cache.src_xn??=new RegExp("xn--[a-z0-9\\-]{1,59}")}get_tld(){if(this.cache.tld)return this.
cache.tld;let e=[...new Set(this.opts.tlds||[])].sort().reverse().join("|");return this.cache.tld=new RegExp(`${e||"$#none#$"}|${this.get_xn().source}`),this.cache.
tld}get_domain_root(){return this.cache.src_domain_root??=new RegExp("(?:"+this.get_xn().source+`|${this.get_pseudo_letter().source}{1,63})`)}get_domain(){return this.
cache.src_domain??=new RegExp("(?:"+this.get_xn().source+`|(?:${this.get_pseudo_letter().source})|(?:${this.get_pseudo_letter().source}(?:-|${this.get_pseudo_letter().
source}){0,61}${this.get_pseudo_letter().source}))`)}get_url_host_port(){return this.cache.url_host_port??=new RegExp("(?:"+this.get_ipv6_url_host().source+`|(?\
:(?:(?:${this.get_domain().source})\\.){0,10}${this.get_domain().source}))`+this.get_port().source+this.get_host_terminator().source)}get_fuzzy_url_host_port(){
return this.cache.fuzzy_url_host_port??=new RegExp("(?:"+(this.opts.fuzzyIP?this.get_ipv4_addr().source+"|":"")+`(?:(?:(?:${this.get_domain().source})\\.){1,10}(\
?:${this.get_tld().source})))`+this.get_host_terminator().source)}get_mail_host(){return this.cache.src_mail_host??=new RegExp("(?:"+this.get_ipv6_mail_host().source+
`|(?:(?:(?:${this.get_domain().source})\\.){0,4}${this.get_domain().source}))`+this.get_host_terminator().source)}get_fuzzy_mail_host(){return this.cache.src_fuzzy_mail_host??=
new RegExp("(?:"+this.get_ipv6_mail_host().source+`|(?:(?:(?:${this.get_domain().source})[.]){1,4}${this.get_domain_root().source}))`+this.get_host_terminator().
source)}get_path_extra(){return this.cache.src_path_extra??=new RegExp("")}get_fuzzy_mail_host_search(){return this.cache.mail_fuzzy_host_search??=new RegExp(`@${this.
get_fuzzy_mail_host().source}`,"ig")}get_fuzzy_link_search(){return this.cache.link_fuzzy_search??=new RegExp(`(^|(?![.:/\\-_@])(?:[$+<=>^\`|｜]|${this.src_ZPCc}\
))(?:(?![$+<=>^\`|｜])${this.get_fuzzy_url_host_port().source}${this.get_path().source})`,"ig")}get_http_validator(){return this.cache.http_validator??=new RegExp(
"\\/\\/"+(this.opts.urlAuth?this.get_auth().source:"")+this.get_url_host_port().source+this.get_path().source,"iy")}get_relative_proto_validator(){return this.cache.
relative_proto_validator??=new RegExp((this.opts.urlAuth?this.get_auth().source:"")+`(?:localhost|${this.get_ipv6_url_host().source}|(?:(?:${this.get_domain().source}\
)[.]){1,10}${this.get_domain_root().source})`+this.get_port().source+this.get_host_terminator().source+this.get_path().source,"iy")}get_mail_name_validator(){return this.
cache.mail_name_validator??=new RegExp(`(?:^|${this.get_text_separators().source}|"|\\(|${this.src_ZCc})(${this.get_mail_name().source})$`)}get_mailto_validator(){
return this.cache.mailto_validator??=new RegExp(`${this.get_mail_name().source}@${this.get_mail_host().source}`,"iy")}get_schema_names(){return this.cache.schema_names??=
new RegExp((this.opts.schema_names||[]).map(e=>this.escapeRE(e)).join("|"))}get_schema_search(){return this.cache.schema_search??=new RegExp(`(^|(?!_)(?:[><｜]|${this.
src_ZPCc}))(${this.get_schema_names().source})`,"ig")}get_schema_at_start(){return this.cache.schema_at_start??=new RegExp(`^${this.get_schema_search().source}`,
"i")}},gr={validate:(e,t,n)=>{let r=n.re.get_http_validator();r.lastIndex=t;let s=r.exec(e);return s?s[0].length:0},normalize:(e,t)=>t.normalize(e)},cc={"http:":gr,
"https:":gr,"ftp:":gr,"//":{validate:function(e,t,n){let r=n.re.get_relative_proto_validator();r.lastIndex=t;let s=r.exec(e);return s?t>=3&&e[t-3]===":"||t>=3&&
e[t-3]==="/"?0:s[0].length:0},normalize:(e,t)=>t.normalize(e)},"mailto:":{validate:function(e,t,n){let r=n.re.get_mailto_validator();r.lastIndex=t;let s=r.exec(
e);return s?s[0].length:0},normalize:(e,t)=>t.normalize(e)}},uc="a:cdefgilmnoqrstuwxz|b:abdefghijmnorstvwyz|c:acdfghiklmnoruvwxyz|d:ejkmoz|e:cegrstu|f:ijkmor|g:\
abdefghilmnpqrstuwy|h:kmnrtu|i:delmnoqrst|j:emop|k:eghimnprwyz|l:abcikrstuvy|m:acdeghklmnopqrstuvwxyz|n:acefgilopruz|o:m|p:aefghklmnrstwy|q:a|r:eosuw|s:abcdeghi\
jklmnortuvxyz|t:cdfghjklmnortvwz|u:agksyz|v:aceginu|w:fs|y:et|z:amw",dc="biz|com|edu|gov|net|org|pro|web|xxx|aero|asia|coop|info|museum|name|shop|рф";function pc(){
let e=dc.split("|");return uc.split("|").forEach(t=>{let n=t.indexOf(":"),r=t.slice(0,n);for(let s of t.slice(n+1))e.push(r+s)}),e}var fc={fuzzyLink:!1,fuzzyEmail:!0,
fuzzyIP:!1,"---":!1,tlds:pc(),urlAuth:!1,maxLength:1e4},Ts=class{schema;index;lastIndex;raw;text;url;constructor(e,t,n,r){let s=e.slice(n,r);this.schema=t.toLowerCase(),
this.index=n,this.lastIndex=r,this.raw=s,this.text=s,this.url=s}},Fs=class{__opts__;__schemas__;re;constructor(e={}){let{rebuilder:t,...n}=e;this.__opts__={...fc,
...n},this.__schemas__={...cc},this.re=t||new lc,this.re.set({...this.__opts__,schema_names:Object.keys(this.__schemas__)})}add(e,t=null){if(!t)delete this.__schemas__[e];else{
let n={normalize:(r,s)=>s.normalize(r),...t};this.__schemas__[e]=n}return this.re.set({...this.__opts__,schema_names:Object.keys(this.__schemas__)}),this}set(e={}){
return this.__opts__={...this.__opts__,...e},this.re.set({...this.__opts__,schema_names:Object.keys(this.__schemas__)}),this}test(e){if(!e.length)return!1;let t,
n;for(n=this.re.get_schema_search(),n.lastIndex=0;(t=n.exec(e))!==null;)if(this.testSchemaAt(e,t[2],n.lastIndex))return!0;if(this.__opts__.fuzzyLink&&this.__schemas__["\
http:"]&&(n=this.re.get_fuzzy_link_search(),n.lastIndex=0,n.exec(e)!==null))return!0;if(this.__opts__.fuzzyEmail&&this.__schemas__["mailto:"]&&e.indexOf("@")>=0){
let r=this.re.get_fuzzy_mail_host_search(),s=this.re.get_mail_name_validator();for(r.lastIndex=0;(t=r.exec(e))!==null;){let i=e.slice(Math.max(0,t.index-65),t.index);
if(s.test(i))return!0}}return!1}testSchemaAt(e,t,n){return this.__schemas__[t.toLowerCase()]?this.__schemas__[t.toLowerCase()].validate(e.slice(0,n+this.__opts__.
maxLength),n,this):0}match(e){let t=[],n=this.re.get_schema_search(),r,s,i,a,l,c,u=!1,d=!1,m=!1,h=0;if(!e.length)return null;for(n.lastIndex=0,this.__opts__.fuzzyLink&&
this.__schemas__["http:"]&&(r=this.re.get_fuzzy_link_search(),r.lastIndex=0),this.__opts__.fuzzyEmail&&this.__schemas__["mailto:"]&&(s=this.re.get_fuzzy_mail_host_search(),
s.lastIndex=0,i=this.re.get_mail_name_validator());;){let p=Math.max(h-1,0);if(s&&i&&!m&&(!l||l.index<h))for(s.lastIndex<p&&(s.lastIndex=p);;){let y=s.exec(e);if(!y){
m=!0,l=void 0;break}let D=i.exec(e.slice(Math.max(0,y.index-65),y.index));if(D){if(l={schema:"mailto:",index:y.index-D[1].length,lastIndex:y.index+y[0].length},
l.index>=h)break;s.lastIndex<p&&(s.lastIndex=p)}}if(r&&!d&&(!a||a.index<h))for(r.lastIndex<p&&(r.lastIndex=p);;){let y=r.exec(e);if(!y){d=!0,a=void 0;break}if(a=
{schema:"",index:y.index+y[1].length,lastIndex:y.index+y[0].length},a.index>=h)break;r.lastIndex<p&&(r.lastIndex=p)}let f=l;(!f||a&&(a.index<f.index||a.index===
f.index&&a.lastIndex>f.lastIndex))&&(f=a);let k;if(!u)for(;;){if(!c){n.lastIndex<p&&(n.lastIndex=p);let C=n.exec(e);if(!C){u=!0;break}c={schema:C[2],index:C.index+
C[1].length,lastIndex:C.index+C[0].length}}if(c.index<h){c=void 0;continue}if(f&&c.index>f.index)break;let y=c;c=void 0;let D=this.testSchemaAt(e,y.schema,y.lastIndex);
if(D){k={schema:y.schema,index:y.index,lastIndex:y.lastIndex+D};break}}let w=k;if((!w||l&&(l.index<w.index||l.index===w.index&&l.lastIndex>w.lastIndex))&&(w=l),
(!w||a&&(a.index<w.index||a.index===w.index&&a.lastIndex>w.lastIndex))&&(w=a),!w)break;w===l?l=void 0:w===a&&(a=void 0);let x=new Ts(e,w.schema,w.index,w.lastIndex);
x.schema?this.__schemas__[x.schema].normalize(x,this):this.normalize(x),t.push(x),h=w.lastIndex}return t.length?t:null}matchAtStart(e){if(!e.length)return null;
let t=this.re.get_schema_at_start().exec(e);if(!t)return null;let n=this.testSchemaAt(e,t[2],t[0].length);if(!n)return null;let r=new Ts(e,t[2],t.index+t[1].length,
t.index+t[0].length+n);return this.__schemas__[r.schema].normalize(r,this),r}tlds(e,t=!1){return e=Array.isArray(e)?e:[e],t?this.__opts__.tlds=this.__opts__.tlds.
concat(e):this.__opts__.tlds=e,this.re.set({...this.__opts__,schema_names:Object.keys(this.__schemas__)}),this}normalize(e){e.schema||(e.url=`http://${e.url}`),
e.schema==="mailto:"&&!/^mailto:/i.test(e.url)&&(e.url=`mailto:${e.url}`)}};var mc=/^xn--/,hc=/[^\0-\x7F]/,gc=/[\x2E\u3002\uFF0E\uFF61]/g,bc={overflow:"Overflow: input needs wider integers to process","not-basic":"Illegal input >= 0x80 \
(not a basic code point)","invalid-input":"Invalid input"},br=35,ke=Math.floor,kr=String.fromCharCode;function $e(e){throw new RangeError(bc[e])}function kc(e,t){
let n=[],r=e.length;for(;r--;)n[r]=t(e[r]);return n}function Ms(e,t){let n=e.split("@"),r="";n.length>1&&(r=n[0]+"@",e=n[1]),e=e.replace(gc,".");let s=e.split("\
."),i=kc(s,t).join(".");return r+i}function Bs(e){let t=[],n=0,r=e.length;for(;n<r;){let s=e.charCodeAt(n++);if(s>=55296&&s<=56319&&n<r){let i=e.charCodeAt(n++);
(i&64512)==56320?t.push(((s&1023)<<10)+(i&1023)+65536):(t.push(s),n--)}else t.push(s)}return t}var vc=e=>String.fromCodePoint(...e),wc=function(e){return e>=48&&
e<58?26+(e-48):e>=65&&e<91?e-65:e>=97&&e<123?e-97:36},Ps=function(e,t){return e+22+75*(e<26)-((t!=0)<<5)},$s=function(e,t,n){let r=0;for(e=n?ke(e/700):e>>1,e+=ke(
e/t);e>br*26>>1;r+=36)e=ke(e/br);return ke(r+(br+1)*e/(e+38))},Os=function(e){let t=[],n=e.length,r=0,s=128,i=72,a=e.lastIndexOf("-");a<0&&(a=0);for(let l=0;l<a;++l)
e.charCodeAt(l)>=128&&$e("not-basic"),t.push(e.charCodeAt(l));for(let l=a>0?a+1:0;l<n;){let c=r;for(let d=1,m=36;;m+=36){l>=n&&$e("invalid-input");let h=wc(e.charCodeAt(
l++));h>=36&&$e("invalid-input"),h>ke((2147483647-r)/d)&&$e("overflow"),r+=h*d;let p=m<=i?1:m>=i+26?26:m-i;if(h<p)break;let f=36-p;d>ke(2147483647/f)&&$e("overf\
low"),d*=f}let u=t.length+1;i=$s(r-c,u,c==0),ke(r/u)>2147483647-s&&$e("overflow"),s+=ke(r/u),r%=u,t.splice(r++,0,s)}return String.fromCodePoint(...t)},Is=function(e){
let t=[];e=Bs(e);let n=e.length,r=128,s=0,i=72;for(let c of e)c<128&&t.push(kr(c));let a=t.length,l=a;for(a&&t.push("-");l<n;){let c=2147483647;for(let d of e)d>=
r&&d<c&&(c=d);let u=l+1;c-r>ke((2147483647-s)/u)&&$e("overflow"),s+=(c-r)*u,r=c;for(let d of e)if(d<r&&++s>2147483647&&$e("overflow"),d===r){let m=s;for(let h=36;;h+=
36){let p=h<=i?1:h>=i+26?26:h-i;if(m<p)break;let f=m-p,k=36-p;t.push(kr(Ps(p+f%k,0))),m=ke(f/k)}t.push(kr(Ps(m,0))),i=$s(s,u,l===a),s=0,++l}++s,++r}return t.join(
"")},_c=function(e){return Ms(e,function(t){return mc.test(t)?Os(t.slice(4).toLowerCase()):t})},yc=function(e){return Ms(e,function(t){return hc.test(t)?"xn--"+
Is(t):t})},xc={version:"2.3.1",ucs2:{decode:Bs,encode:vc},decode:Os,encode:Is,toASCII:yc,toUnicode:_c};var vr=xc;var Ls=Object.defineProperty,Zs=(e,t)=>{let n={};for(var r in e)Ls(n,r,{get:e[r],enumerable:!0});return t||Ls(n,Symbol.toStringTag,{value:"Module"}),n},Sc=Zs({arrayReplaceAt:()=>Cc,
asciiTrim:()=>xn,callable:()=>Ks,escapeHtml:()=>Oe,escapeRE:()=>Oc,fromCodePoint:()=>_t,isMdAsciiPunct:()=>St,isPunctChar:()=>Ys,isPunctCharCode:()=>xt,isSpace:()=>j,
isValidEntityCode:()=>Cr,isWhiteSpace:()=>yt,lib:()=>Ic,normalizeReference:()=>yn,unescapeAll:()=>Qe,unescapeMd:()=>Tc});function Ks(e){let t=function(...n){return Reflect.
construct(e,n,new.target&&new.target!==t?new.target:e)};return Object.defineProperty(t,"name",{value:e.name}),Object.setPrototypeOf(t,e),t.prototype=e.prototype,
t}function Cc(e,t,n){return[].concat(e.slice(0,t),n,e.slice(t+1))}function Cr(e){return!(e>=55296&&e<=57343||e>=64976&&e<=65007||(e&65535)===65535||(e&65535)===
65534||e>=0&&e<=8||e===11||e>=14&&e<=31||e>=127&&e<=159||e>1114111)}function _t(e){if(e>65535){e-=65536;let t=55296+(e>>10),n=56320+(e&1023);return String.fromCharCode(
t,n)}return String.fromCharCode(e)}var Gs=/\\([!"#$%&'()*+,\-./:;<=>?@[\\\]^_`{|}~])/g,Ec=new RegExp(`${Gs.source}|${/&([a-z#][a-z0-9]{1,31});/gi.source}`,"gi"),
Dc=/^#((?:x[a-f0-9]{1,8}|[0-9]{1,8}))$/i;function Ac(e,t){if(t.charCodeAt(0)===35&&Dc.test(t)){let r=t[1].toLowerCase()==="x"?parseInt(t.slice(2),16):parseInt(t.
slice(1),10);return Cr(r)?_t(r):e}let n=hr(e);return n!==e?n:e}function Tc(e){return e.indexOf("\\")<0?e:e.replace(Gs,"$1")}function Qe(e){return e.indexOf("\\")<
0&&e.indexOf("&")<0?e:e.replace(Ec,function(t,n,r){return n||Ac(t,r)})}var Fc=/[&<>"]/,Pc=/[&<>"]/g,Mc={"&":"&amp;","<":"&lt;",">":"&gt;",'"':"&quot;"};function Bc(e){
return Mc[e]}function Oe(e){return Fc.test(e)?e.replace(Pc,Bc):e}var $c=/[.?*+^$[\]\\(){}|-]/g;function Oc(e){return e.replace($c,"\\$&")}function j(e){switch(e){case 9:case 32:
return!0}return!1}function yt(e){if(e>=8192&&e<=8202)return!0;switch(e){case 9:case 10:case 11:case 12:case 13:case 32:case 160:case 5760:case 8239:case 8287:case 12288:
return!0}return!1}function Ys(e){return vt.test(e)||pr.test(e)}function xt(e){return Ys(_t(e))}function St(e){switch(e){case 33:case 34:case 35:case 36:case 37:case 38:case 39:case 40:case 41:case 42:case 43:case 44:case 45:case 46:case 47:case 58:case 59:case 60:case 61:case 62:case 63:case 64:case 91:case 92:case 93:case 94:case 95:case 96:case 123:case 124:case 125:case 126:
return!0;default:return!1}}function yn(e){return e=e.trim().replace(/\s+/g," "),e.toLowerCase().toUpperCase()}function Rs(e){return e===32||e===9||e===10||e===13}
function xn(e){let t=0;for(;t<e.length&&Rs(e.charCodeAt(t));t++);let n=e.length-1;for(;n>=t&&Rs(e.charCodeAt(n));n--);return e.slice(t,n+1)}var Ic={mdurl:cr,ucmicro:mr};
function Lc(e,t,n){let r,s,i,a,l=e.posMax,c=e.pos;for(e.pos=t+1,r=1;e.pos<l;){if(i=e.src.charCodeAt(e.pos),i===93&&(r--,r===0)){s=!0;break}if(a=e.pos,e.md.inline.
skipToken(e),i===91){if(a===e.pos-1)r++;else if(n)return e.pos=c,-1}}let u=-1;return s&&(u=e.pos),e.pos=c,u}function Rc(e,t,n){let r,s=t,i={ok:!1,pos:0,str:""};
if(e.charCodeAt(s)===60){for(s++;s<n;){if(r=e.charCodeAt(s),r===10||r===60)return i;if(r===62)return i.pos=s+1,i.str=Qe(e.slice(t+1,s)),i.ok=!0,i;if(r===92&&s+1<
n){s+=2;continue}s++}return i}let a=0;for(;s<n&&(r=e.charCodeAt(s),!(r===32||r<32||r===127));){if(r===92&&s+1<n){if(e.charCodeAt(s+1)===32){s++;continue}s+=2;continue}
if(r===40&&(a++,a>32))return i;if(r===41){if(a===0)break;a--}s++}return t===s||a!==0||(i.str=Qe(e.slice(t,s)),i.pos=s,i.ok=!0),i}function Jc(e,t,n,r){let s,i=t,
a={ok:!1,can_continue:!1,pos:0,str:"",marker:0};if(r)a.str=r.str,a.marker=r.marker;else{if(i>=n)return a;let l=e.charCodeAt(i);if(l!==34&&l!==39&&l!==40)return a;
t++,i++,l===40&&(l=41),a.marker=l}for(;i<n;){if(s=e.charCodeAt(i),s===a.marker)return a.pos=i+1,a.str+=Qe(e.slice(t,i)),a.ok=!0,a;if(s===40&&a.marker===41)return a;
s===92&&i+1<n&&i++,i++}return a.can_continue=!0,a.str+=Qe(e.slice(t,i)),a}var Xc=Zs({parseLinkDestination:()=>Rc,parseLinkLabel:()=>Lc,parseLinkTitle:()=>Jc});function Ct(e){
"@babel/helpers - typeof";return Ct=typeof Symbol=="function"&&typeof Symbol.iterator=="symbol"?function(t){return typeof t}:function(t){return t&&typeof Symbol==
"function"&&t.constructor===Symbol&&t!==Symbol.prototype?"symbol":typeof t},Ct(e)}function zc(e,t){if(Ct(e)!="object"||!e)return e;var n=e[Symbol.toPrimitive];if(n!==
void 0){var r=n.call(e,t||"default");if(Ct(r)!="object")return r;throw new TypeError("@@toPrimitive must return a primitive value.")}return(t==="string"?String:
Number)(e)}function Nc(e){var t=zc(e,"string");return Ct(t)=="symbol"?t:t+""}function A(e,t,n){return(t=Nc(t))in e?Object.defineProperty(e,t,{value:n,enumerable:!0,
configurable:!0,writable:!0}):e[t]=n,e}var ze=class{constructor(e,t,n){A(this,"map",null),A(this,"level",0),A(this,"children",null),A(this,"content",""),A(this,
"markup",""),A(this,"info",""),A(this,"block",!1),A(this,"hidden",!1),this.type=e,this.tag=t,this.attrs=null,this.nesting=n,this.meta=null}attrIndex(e){if(!this.
attrs)return-1;let t=this.attrs;for(let n=0,r=t.length;n<r;n++)if(t[n][0]===e)return n;return-1}attrPush(e){this.attrs?this.attrs.push(e):this.attrs=[e]}attrSet(e,t){
let n=this.attrIndex(e),r=[e,t];n<0?this.attrPush(r):this.attrs[n]=r}attrGet(e){let t=this.attrIndex(e),n=null;return t>=0&&(n=this.attrs[t][1]),n}attrJoin(e,t){
let n=this.attrIndex(e);n<0?this.attrPush([e,t]):this.attrs[n][1]=`${this.attrs[n][1]} ${t}`}},Et=class{constructor(){A(this,"__rules__",[]),A(this,"__cache__",
null)}__find__(e){for(let t=0;t<this.__rules__.length;t++)if(this.__rules__[t].name===e)return t;return-1}__compile__(){let e=new Set;this.__rules__.forEach(t=>{
t.enabled&&t.alt.forEach(n=>{n&&e.add(n)})}),this.__cache__=Object.create(null),this.__cache__[""]=[],this.__rules__.forEach(t=>{t.enabled&&this.__cache__[""].push(
t.fn)}),e.forEach(t=>{this.__cache__[t]=[],this.__rules__.forEach(n=>{n.enabled&&n.alt.indexOf(t)>=0&&this.__cache__[t].push(n.fn)})})}at(e,t,n={}){let r=this.__find__(
e);if(r===-1)throw new Error(`Parser rule not found: ${e}`);this.__rules__[r].fn=t,this.__rules__[r].alt=n.alt||[],this.__cache__=null}before(e,t,n,r={}){let s=this.
__find__(e);if(s===-1)throw new Error(`Parser rule not found: ${e}`);this.__rules__.splice(s,0,{name:t,enabled:!0,fn:n,alt:r.alt||[]}),this.__cache__=null}after(e,t,n,r={}){
let s=this.__find__(e);if(s===-1)throw new Error(`Parser rule not found: ${e}`);this.__rules__.splice(s+1,0,{name:t,enabled:!0,fn:n,alt:r.alt||[]}),this.__cache__=
null}push(e,t,n={}){this.__rules__.push({name:e,enabled:!0,fn:t,alt:n.alt||[]}),this.__cache__=null}enable(e,t=!1){Array.isArray(e)||(e=[e]);let n=[];return e.forEach(
r=>{let s=this.__find__(r);if(s<0){if(t)return;throw new Error(`Rules manager: invalid rule name ${r}`)}this.__rules__[s].enabled=!0,n.push(r)}),this.__cache__=
null,n}enableOnly(e,t=!1){Array.isArray(e)||(e=[e]),this.__rules__.forEach(n=>{n.enabled=!1}),this.enable(e,t)}disable(e,t=!1){Array.isArray(e)||(e=[e]);let n=[];
return e.forEach(r=>{let s=this.__find__(r);if(s<0){if(t)return;throw new Error(`Rules manager: invalid rule name ${r}`)}this.__rules__[s].enabled=!1,n.push(r)}),
this.__cache__=null,n}getRules(e){return this.__cache__||this.__compile__(),this.__cache__[e]||[]}},ve={};ve.code_inline=function(e,t,n,r,s){let i=e[t];return`<\
code${s.renderAttrs(i)}>${Oe(i.content)}</code>`};ve.code_block=function(e,t,n,r,s){let i=e[t];return`<pre${s.renderAttrs(i)}><code>${Oe(e[t].content)}</code></\
pre>
`};ve.fence=function(e,t,n,r,s){let i=e[t],a=i.info?Qe(i.info).trim():"",l="",c="";if(a){let d=a.split(/(\s+)/g);l=d[0],c=d.slice(2).join("")}let u;if(n.highlight?
u=n.highlight(i.content,l,c)||Oe(i.content):u=Oe(i.content),u.indexOf("<pre")===0)return u+`
`;if(a){let d=i.attrIndex("class"),m=i.attrs?i.attrs.slice():[];d<0?m.push(["class",`${n.langPrefix}${l}`]):(m[d]=[m[d][0],m[d][1]],m[d][1]+=` ${n.langPrefix}${l}`);
let h={attrs:m};return`<pre><code${s.renderAttrs(h)}>${u}</code></pre>
`}return`<pre><code${s.renderAttrs(i)}>${u}</code></pre>
`};ve.image=function(e,t,n,r,s){let i=e[t];return i.attrs[i.attrIndex("alt")][1]=s.renderInlineAsText(i.children,n,r),s.renderToken(e,t,n)};ve.hardbreak=function(e,t,n){
return n.xhtmlOut?`<br />
`:`<br>
`};ve.softbreak=function(e,t,n){return n.breaks?n.xhtmlOut?`<br />
`:`<br>
`:`
`};ve.text=function(e,t){return Oe(e[t].content)};ve.html_block=function(e,t){return e[t].content};ve.html_inline=function(e,t){return e[t].content};var Qs=class{constructor(){
A(this,"rules",Object.assign({},ve))}renderAttrs(e){let t,n,r;if(!e.attrs)return"";for(r="",t=0,n=e.attrs.length;t<n;t++)r+=` ${Oe(e.attrs[t][0])}="${Oe(String(
e.attrs[t][1]))}"`;return r}renderToken(e,t,n){let r=e[t],s="";if(r.hidden)return"";let i=t-1;for(;i>=0&&e[i].hidden&&e[i].nesting===0;)i--;r.block&&r.nesting!==
-1&&i>=0&&e[i].hidden&&e[i].nesting===-1&&(s+=`
`),s+=(r.nesting===-1?"</":"<")+r.tag,s+=this.renderAttrs(r),r.nesting===0&&n.xhtmlOut&&(s+=" /");let a=!1;if(r.block&&(a=!0,r.nesting===1)){let l=t+1;for(;l<e.
length&&e[l].hidden&&e[l].nesting===0;)l++;if(l<e.length){let c=e[l];(c.type==="inline"||c.hidden||c.nesting===-1&&c.tag===r.tag)&&(a=!1)}}return s+=a?`>
`:">",s}renderInline(e,t,n){let r="",s=this.rules;for(let i=0,a=e.length;i<a;i++){let l=e[i].type;typeof s[l]<"u"?r+=s[l](e,i,t,n,this):r+=this.renderToken(e,i,
t)}return r}renderInlineAsText(e,t,n){let r="";for(let s=0,i=e.length;s<i;s++)switch(e[s].type){case"text":case"code_inline":r+=e[s].content;break;case"image":r+=
this.renderInlineAsText(e[s].children,t,n);break;case"html_inline":case"html_block":r+=e[s].content;break;case"softbreak":case"hardbreak":r+=`
`}return r}render(e,t,n){let r="",s=this.rules;for(let i=0,a=e.length;i<a;i++){let l=e[i].type;l==="inline"?r+=this.renderInline(e[i].children,t,n):typeof s[l]<
"u"?r+=s[l](e,i,t,n,this):r+=this.renderToken(e,i,t)}return r}},ei=class{constructor(e,t,n){A(this,"tokens",[]),A(this,"inlineMode",!1),A(this,"Token",ze),this.
src=e,this.env=n,this.md=t}},Uc=/\r\n?/g,Wc=/\0/g;function qc(e){let t;t=e.src.replace(Uc,`
`),t=t.replace(Wc,"�"),e.src=t}function Hc(e){let t;e.inlineMode?(t=new e.Token("inline","",0),t.content=e.src,t.map=[0,1],t.children=[],e.tokens.push(t)):e.md.
block.parse(e.src,e.md,e.env,e.tokens)}function jc(e){let t=e.tokens,n=0;for(let r=0;r<t.length;r++)t[r].type!=="reference_definition"&&(r!==n&&(t[n]=t[r]),n++);
t.length!==n&&(t.length=n)}function Vc(e){let t=e.tokens;for(let n=0,r=t.length;n<r;n++){let s=t[n];s.type==="inline"&&e.md.inline.parse(s.content,e.md,e.env,s.
children)}}function Zc(e){return/^<a[>\s]/i.test(e)}function Kc(e){return/^<\/a\s*>/i.test(e)}function Gc(e){let t=e.tokens;if(e.md.options.linkify)for(let n=0,
r=t.length;n<r;n++){if(t[n].type!=="inline"||!e.md.linkify.test(t[n].content))continue;let s=t[n].children,i=[],a=0;for(let l=s.length-1;l>=0;l--){let c=s[l];if(c.
type==="link_close"){for(l--;s[l].level!==c.level&&s[l].type!=="link_open";)l--;continue}if(c.type==="html_inline"&&(Zc(c.content)&&a>0&&a--,Kc(c.content)&&a++),
!(a>0)&&c.type==="text"&&e.md.linkify.test(c.content)){let u=c.content,d=e.md.linkify.match(u),m=[],h=c.level,p=0;d.length>0&&d[0].index===0&&l>0&&s[l-1].type===
"text_special"&&(d=d.slice(1));for(let f=0;f<d.length;f++){let k=d[f].url,w=e.md.normalizeLink(k);if(!e.md.validateLink(w))continue;let x=d[f].text;d[f].schema?
d[f].schema==="mailto:"&&!/^mailto:/i.test(x)?x=e.md.normalizeLinkText(`mailto:${x}`).replace(/^mailto:/,""):x=e.md.normalizeLinkText(x):x=e.md.normalizeLinkText(
`http://${x}`).replace(/^http:\/\//,"");let y=d[f].index;if(y>p){let F=new e.Token("text","",0);F.content=u.slice(p,y),F.level=h,m.push(F)}let D=new e.Token("li\
nk_open","a",1);D.attrs=[["href",w]],D.level=h++,D.markup="linkify",D.info="auto",m.push(D);let C=new e.Token("text","",0);C.content=x,C.level=h,m.push(C);let M=new e.
Token("link_close","a",-1);M.level=--h,M.markup="linkify",M.info="auto",m.push(M),p=d[f].lastIndex}if(p<u.length){let f=new e.Token("text","",0);f.content=u.slice(
p),f.level=h,m.push(f)}i.push({index:l,nodes:m})}}if(i.length>0){let l=s.length;for(let m of i)l+=m.nodes.length-1;let c=new Array(l),u=0,d=0;i.reverse();for(let m=0;m<
s.length;m++){let h=i[u];if(h?.index===m){for(let p of h.nodes)c[d++]=p;u++}else c[d++]=s[m]}t[n].children=c}}}var ti=/\+-|\.\.|\?\?\?\?|!!!!|,,|--/,Yc=/\((c|tm|r)\)/i,
Qc=/\((c|tm|r)\)/gi,eu={c:"©",r:"®",tm:"™"};function tu(e,t){return eu[t.toLowerCase()]}function nu(e){let t=0;for(let n=e.length-1;n>=0;n--){let r=e[n];r.type===
"text"&&!t&&(r.content=r.content.replace(Qc,tu)),r.type==="link_open"&&r.info==="auto"&&t--,r.type==="link_close"&&r.info==="auto"&&t++}}function ru(e){let t=0;
for(let n=e.length-1;n>=0;n--){let r=e[n];r.type==="text"&&!t&&ti.test(r.content)&&(r.content=r.content.replace(/\+-/g,"±").replace(/\.{2,}/g,"…").replace(/([?!])…/g,
"$1..").replace(/([?!]){4,}/g,"$1$1$1").replace(/,{2,}/g,",").replace(/(^|[^-])---(?=[^-]|$)/gm,"$1—").replace(/(^|\s)--(?=\s|$)/gm,"$1–").replace(/(^|[^-\s])--(?=[^-\s]|$)/gm,
"$1–")),r.type==="link_open"&&r.info==="auto"&&t--,r.type==="link_close"&&r.info==="auto"&&t++}}function ou(e){let t;if(e.md.options.typographer)for(t=e.tokens.
length-1;t>=0;t--)e.tokens[t].type==="inline"&&(Yc.test(e.tokens[t].content)&&nu(e.tokens[t].children),ti.test(e.tokens[t].content)&&ru(e.tokens[t].children))}var su=/['"]/,
Js=/['"]/g,Xs="’",iu=1e3;function zs(e,t,n){for(;e.length>n;){let r=e.pop();r.isSingleQuote?t.single=r.prevSameQuoteIdx:t.double=r.prevSameQuoteIdx}}function vn(e,t,n,r){
e[t]||(e[t]=[]),e[t].push({pos:n,ch:r})}function au(e,t){let n="",r=0;t.sort((s,i)=>s.pos-i.pos);for(let s=0;s<t.length;s++){let i=t[s];n+=e.slice(r,i.pos)+i.ch,
r=i.pos+1}return n+e.slice(r)}function lu(e,t){let n,r=[],s={single:-1,double:-1},i={};for(let a=0;a<e.length;a++){let l=e[a],c=e[a].level;for(n=r.length-1;n>=0&&
!(r[n].level<=c);n--);if(zs(r,s,n+1),l.type!=="text")continue;let u=l.content,d=0,m=u.length;e:for(;d<m;){Js.lastIndex=d;let h=Js.exec(u);if(!h)break;let p=!0,f=!0;
d=h.index+1;let k=h[0]==="'",w=32;if(h.index-1>=0)w=u.charCodeAt(h.index-1);else for(n=a-1;n>=0&&!(e[n].type==="softbreak"||e[n].type==="hardbreak");n--)if(e[n].
content){w=e[n].content.charCodeAt(e[n].content.length-1);break}let x=32;if(d<m)x=u.charCodeAt(d);else for(n=a+1;n<e.length&&!(e[n].type==="softbreak"||e[n].type===
"hardbreak");n++)if(e[n].content){x=e[n].content.charCodeAt(0);break}let y=St(w)||xt(w),D=St(x)||xt(x),C=yt(w),M=yt(x);if(M?p=!1:D&&(C||y||(p=!1)),C?f=!1:y&&(M||
D||(f=!1)),x===34&&h[0]==='"'&&w>=48&&w<=57&&(f=p=!1),p&&f&&(p=y,f=D),!p&&!f){k&&vn(i,a,h.index,Xs);continue}if(f&&(n=k?s.single:s.double,n>=0&&r[n].level===c)){
let F=r[n],N,Z;k?(N=t.md.options.quotes[2],Z=t.md.options.quotes[3]):(N=t.md.options.quotes[0],Z=t.md.options.quotes[1]),vn(i,a,h.index,Z),vn(i,F.tokenIdx,F.contentPos,
N),zs(r,s,n);continue e}if(p){if(r.length>=iu)return;r.push({tokenIdx:a,contentPos:h.index,isSingleQuote:k,level:c,prevSameQuoteIdx:k?s.single:s.double}),k?s.single=
r.length-1:s.double=r.length-1}else f&&k&&vn(i,a,h.index,Xs)}}Object.keys(i).forEach(function(a){let l=Number(a);e[l].content=au(e[l].content,i[a])})}function cu(e){
if(e.md.options.typographer)for(let t=e.tokens.length-1;t>=0;t--)e.tokens[t].type!=="inline"||!su.test(e.tokens[t].content)||lu(e.tokens[t].children,e)}function uu(e){
let t,n,r=e.length;for(t=0;t<r;t++)e[t].type==="text_special"&&(e[t].type="text");for(t=n=0;t<r;t++)e[t].type==="text"&&t+1<r&&e[t+1].type==="text"?e[t+1].content=
e[t].content+e[t+1].content:(t!==n&&(e[n]=e[t]),n++);t!==n&&(e.length=n)}function du(e){let t,n,r=e.tokens,s=r.length;for(let i=0;i<s;i++){if(r[i].type!=="inlin\
e")continue;let a=r[i].children,l=a.length;for(t=0;t<l;t++)a[t].type==="text_special"&&(a[t].type="text"),a[t].children&&uu(a[t].children);for(t=n=0;t<l;t++)a[t].
type==="text"&&t+1<l&&a[t+1].type==="text"?a[t+1].content=a[t].content+a[t+1].content:(t!==n&&(a[n]=a[t]),n++);t!==n&&(a.length=n)}}var wr=[["normalize",qc],["b\
lock",Hc],["strip_references",jc],["inline",Vc],["linkify",Gc],["replacements",ou],["smartquotes",cu],["text_join",du]],ni=class{constructor(){A(this,"ruler",new Et),
A(this,"State",ei);for(let e=0;e<wr.length;e++)this.ruler.push(wr[e][0],wr[e][1])}process(e){let t=this.ruler.getRules("");for(let n=0,r=t.length;n<r;n++)t[n](e)}},
ri=class{constructor(e,t,n,r){A(this,"bMarks",[]),A(this,"eMarks",[]),A(this,"tShift",[]),A(this,"sCount",[]),A(this,"bsCount",[]),A(this,"blkIndent",0),A(this,
"line",0),A(this,"lineMax",0),A(this,"tight",!1),A(this,"listIndent",-1),A(this,"parentType","root"),A(this,"level",0),A(this,"Token",ze),this.src=e,this.md=t,this.
env=n,this.tokens=r;let s=this.src;for(let i=0,a=0,l=0,c=0,u=s.length,d=!1;a<u;a++){let m=s.charCodeAt(a);if(!d)if(j(m)){l++,m===9?c+=4-c%4:c++;continue}else d=
!0;(m===10||a===u-1)&&(m!==10&&a++,this.bMarks.push(i),this.eMarks.push(a),this.tShift.push(l),this.sCount.push(c),this.bsCount.push(0),d=!1,l=0,c=0,i=a+1)}this.
bMarks.push(s.length),this.eMarks.push(s.length),this.tShift.push(0),this.sCount.push(0),this.bsCount.push(0),this.lineMax=this.bMarks.length-1}push(e,t,n){let r=new ze(
e,t,n);return r.block=!0,n<0&&this.level--,r.level=this.level,n>0&&this.level++,this.tokens.push(r),r}isEmpty(e){return this.bMarks[e]+this.tShift[e]>=this.eMarks[e]}skipEmptyLines(e){
for(let t=this.lineMax;e<t&&!(this.bMarks[e]+this.tShift[e]<this.eMarks[e]);e++);return e}skipSpaces(e){for(let t=this.src.length;e<t&&j(this.src.charCodeAt(e));e++)
;return e}skipSpacesBack(e,t){if(e<=t)return e;for(;e>t;)if(!j(this.src.charCodeAt(--e)))return e+1;return e}skipChars(e,t){for(let n=this.src.length;e<n&&this.
src.charCodeAt(e)===t;e++);return e}skipCharsBack(e,t,n){if(e<=n)return e;for(;e>n;)if(t!==this.src.charCodeAt(--e))return e+1;return e}getLines(e,t,n,r){if(e>=
t)return"";let s=new Array(t-e);for(let i=0,a=e;a<t;a++,i++){let l=0,c=this.bMarks[a],u=c,d;for(a+1<t||r?d=this.eMarks[a]+1:d=this.eMarks[a];u<d&&l<n;){let m=this.
src.charCodeAt(u);if(j(m))m===9?l+=4-(l+this.bsCount[a])%4:l++;else if(u-c<this.tShift[a])l++;else break;u++}l>n?s[i]=new Array(l-n+1).join(" ")+this.src.slice(
u,d):s[i]=this.src.slice(u,d)}return s.join("")}},pu=65536;function _r(e,t){let n=e.bMarks[t]+e.tShift[t],r=e.eMarks[t];return e.src.slice(n,r)}function Ns(e){let t=[],
n=e.length,r=0,s=e.charCodeAt(r),i=!1,a=0,l="";for(;r<n;)s===124&&(i?(l+=e.substring(a,r-1),a=r):(t.push(l+e.substring(a,r)),l="",a=r+1)),i=s===92,r++,s=e.charCodeAt(
r);return t.push(l+e.substring(a)),t}function fu(e,t,n,r){if(t+2>n)return!1;let s=t+1;if(e.sCount[s]<e.blkIndent||e.sCount[s]-e.blkIndent>=4)return!1;let i=e.bMarks[s]+
e.tShift[s];if(i>=e.eMarks[s])return!1;let a=e.src.charCodeAt(i++);if(a!==124&&a!==45&&a!==58||i>=e.eMarks[s])return!1;let l=e.src.charCodeAt(i++);if(l!==124&&l!==
45&&l!==58&&!j(l)||a===45&&j(l))return!1;for(;i<e.eMarks[s];){let C=e.src.charCodeAt(i);if(C!==124&&C!==45&&C!==58&&!j(C))return!1;i++}let c=_r(e,t+1),u=c.split(
"|"),d=[];for(let C=0;C<u.length;C++){let M=u[C].trim();if(!M){if(C===0||C===u.length-1)continue;return!1}if(!/^:?-+:?$/.test(M))return!1;M.charCodeAt(M.length-
1)===58?d.push(M.charCodeAt(0)===58?"center":"right"):M.charCodeAt(0)===58?d.push("left"):d.push("")}if(c=_r(e,t).trim(),c.indexOf("|")===-1||e.sCount[t]-e.blkIndent>=
4)return!1;u=Ns(c),u.length&&u[0]===""&&u.shift(),u.length&&u[u.length-1]===""&&u.pop();let m=u.length;if(m===0||m!==d.length)return!1;if(r)return!0;let h=e.parentType;
e.parentType="table";let p=e.md.block.ruler.getRules("blockquote"),f=e.push("table_open","table",1),k=[t,0];f.map=k;let w=e.push("thead_open","thead",1);w.map=[
t,t+1];let x=e.push("tr_open","tr",1);x.map=[t,t+1];for(let C=0;C<u.length;C++){let M=e.push("th_open","th",1);d[C]&&(M.attrs=[["style",`text-align:${d[C]}`]]);
let F=e.push("inline","",0);F.content=u[C].trim(),F.children=[],e.push("th_close","th",-1)}e.push("tr_close","tr",-1),e.push("thead_close","thead",-1);let y,D=0;
for(s=t+2;s<n&&!(e.sCount[s]<e.blkIndent);s++){let C=!1;for(let F=0,N=p.length;F<N;F++)if(p[F](e,s,n,!0)){C=!0;break}if(C||(c=_r(e,s).trim(),!c)||e.sCount[s]-e.
blkIndent>=4||(u=Ns(c),u.length&&u[0]===""&&u.shift(),u.length&&u[u.length-1]===""&&u.pop(),D+=m-u.length,D>pu))break;if(s===t+2){let F=e.push("tbody_open","tbo\
dy",1);F.map=y=[t+2,0]}let M=e.push("tr_open","tr",1);M.map=[s,s+1];for(let F=0;F<m;F++){let N=e.push("td_open","td",1);d[F]&&(N.attrs=[["style",`text-align:${d[F]}`]]);
let Z=e.push("inline","",0);Z.content=u[F]?u[F].trim():"",Z.children=[],e.push("td_close","td",-1)}e.push("tr_close","tr",-1)}return y&&(e.push("tbody_close","t\
body",-1),y[1]=s),e.push("table_close","table",-1),k[1]=s,e.parentType=h,e.line=s,!0}function mu(e,t,n){if(e.sCount[t]-e.blkIndent<4)return!1;let r=t+1,s=r;for(;r<
n;){if(e.isEmpty(r)){r++;continue}if(e.sCount[r]-e.blkIndent>=4){r++,s=r;continue}break}e.line=s;let i=e.push("code_block","code",0);return i.content=e.getLines(
t,s,4+e.blkIndent,!1)+`
`,i.map=[t,e.line],!0}function hu(e,t,n,r){let s=e.bMarks[t]+e.tShift[t],i=e.eMarks[t];if(e.sCount[t]-e.blkIndent>=4||s+3>i)return!1;let a=e.src.charCodeAt(s);if(a!==
126&&a!==96)return!1;let l=s;s=e.skipChars(s,a);let c=s-l;if(c<3)return!1;let u=e.src.slice(l,s),d=e.src.slice(s,i);if(a===96&&d.indexOf(String.fromCharCode(a))>=
0)return!1;if(r)return!0;let m=t,h=!1;for(;m++,!(m>=n||(s=l=e.bMarks[m]+e.tShift[m],i=e.eMarks[m],s<i&&e.sCount[m]<e.blkIndent));)if(e.src.charCodeAt(s)===a&&!(e.
sCount[m]-e.blkIndent>=4)&&(s=e.skipChars(s,a),!(s-l<c)&&(s=e.skipSpaces(s),!(s<i)))){h=!0;break}c=e.sCount[t],e.line=m+(h?1:0);let p=e.push("fence","code",0);return p.
info=d,p.content=e.getLines(t+1,m,c,!0),p.markup=u,p.map=[t,e.line],!0}function gu(e,t,n,r){let s=e.bMarks[t]+e.tShift[t],i=e.eMarks[t],a=e.lineMax;if(e.sCount[t]-
e.blkIndent>=4||e.src.charCodeAt(s)!==62)return!1;if(r)return!0;let l=[],c=[],u=[],d=[],m=e.md.block.ruler.getRules("blockquote"),h=e.parentType;e.parentType="b\
lockquote";let p=!1,f;for(f=t;f<n;f++){let D=e.sCount[f]<e.blkIndent;if(s=e.bMarks[f]+e.tShift[f],i=e.eMarks[f],s>=i)break;if(e.src.charCodeAt(s++)===62&&!D){let M=e.
sCount[f]+1,F,N;e.src.charCodeAt(s)===32?(s++,M++,N=!1,F=!0):e.src.charCodeAt(s)===9?(F=!0,(e.bsCount[f]+M)%4===3?(s++,M++,N=!1):N=!0):F=!1;let Z=M;for(l.push(e.
bMarks[f]),e.bMarks[f]=s;s<i;){let Ee=e.src.charCodeAt(s);if(j(Ee))Ee===9?Z+=4-(Z+e.bsCount[f]+(N?1:0))%4:Z++;else break;s++}p=s>=i,c.push(e.bsCount[f]),e.bsCount[f]=
e.sCount[f]+1+(F?1:0),u.push(e.sCount[f]),e.sCount[f]=Z-M,d.push(e.tShift[f]),e.tShift[f]=s-e.bMarks[f];continue}if(p)break;let C=!1;for(let M=0,F=m.length;M<F;M++)
if(m[M](e,f,n,!0)){C=!0;break}if(C){e.lineMax=f,e.blkIndent!==0&&(l.push(e.bMarks[f]),c.push(e.bsCount[f]),d.push(e.tShift[f]),u.push(e.sCount[f]),e.sCount[f]-=
e.blkIndent);break}l.push(e.bMarks[f]),c.push(e.bsCount[f]),d.push(e.tShift[f]),u.push(e.sCount[f]),e.sCount[f]=-1}let k=e.blkIndent;e.blkIndent=0;let w=e.push(
"blockquote_open","blockquote",1);w.markup=">";let x=[t,0];w.map=x,e.md.block.tokenize(e,t,f);let y=e.push("blockquote_close","blockquote",-1);y.markup=">",e.lineMax=
a,e.parentType=h,x[1]=e.line;for(let D=0;D<d.length;D++)e.bMarks[D+t]=l[D],e.tShift[D+t]=d[D],e.sCount[D+t]=u[D],e.bsCount[D+t]=c[D];return e.blkIndent=k,!0}function bu(e,t,n,r){
let s=e.eMarks[t];if(e.sCount[t]-e.blkIndent>=4)return!1;let i=e.bMarks[t]+e.tShift[t],a=e.src.charCodeAt(i++);if(a!==42&&a!==45&&a!==95)return!1;let l=1;for(;i<
s;){let u=e.src.charCodeAt(i++);if(u!==a&&!j(u))return!1;u===a&&l++}if(l<3)return!1;if(r)return!0;e.line=t+1;let c=e.push("hr","hr",0);return c.map=[t,e.line],c.
markup=Array(l+1).join(String.fromCharCode(a)),!0}function Us(e,t){let n=e.eMarks[t],r=e.bMarks[t]+e.tShift[t],s=e.src.charCodeAt(r++);return s!==42&&s!==45&&s!==
43||r<n&&!j(e.src.charCodeAt(r))?-1:r}function Ws(e,t){let n=e.bMarks[t]+e.tShift[t],r=e.eMarks[t],s=n;if(s+1>=r)return-1;let i=e.src.charCodeAt(s++);if(i<48||i>
57)return-1;for(;;){if(s>=r)return-1;if(i=e.src.charCodeAt(s++),i>=48&&i<=57){if(s-n>=10)return-1;continue}if(i===41||i===46)break;return-1}return s<r&&(i=e.src.
charCodeAt(s),!j(i))?-1:s}function ku(e,t){let n=e.level+2;for(let r=t+2,s=e.tokens.length-2;r<s;r++)e.tokens[r].level===n&&e.tokens[r].type==="paragraph_open"&&
(e.tokens[r+2].hidden=!0,e.tokens[r].hidden=!0,r+=2)}function vu(e,t,n,r){let s,i,a,l,c=t,u=!0;if(e.sCount[c]-e.blkIndent>=4||e.listIndent>=0&&e.sCount[c]-e.listIndent>=
4&&e.sCount[c]<e.blkIndent)return!1;let d=!1;r&&e.parentType==="paragraph"&&e.sCount[c]>=e.blkIndent&&(d=!0);let m,h,p;if((p=Ws(e,c))>=0){if(m=!0,a=e.bMarks[c]+
e.tShift[c],h=Number(e.src.slice(a,p-1)),d&&h!==1)return!1}else if((p=Us(e,c))>=0)m=!1;else return!1;if(d&&e.skipSpaces(p)>=e.eMarks[c])return!1;if(r)return!0;let f=e.
src.charCodeAt(p-1),k=e.tokens.length;m?(l=e.push("ordered_list_open","ol",1),h!==1&&(l.attrs=[["start",h]])):l=e.push("bullet_list_open","ul",1);let w=[c,0];l.
map=w,l.markup=String.fromCharCode(f);let x=!1,y=e.md.block.ruler.getRules("list"),D=e.parentType;for(e.parentType="list";c<n;){i=p,s=e.eMarks[c];let C=e.sCount[c]+
p-(e.bMarks[c]+e.tShift[c]),M=C;for(;i<s;){let qe=e.src.charCodeAt(i);if(qe===9)M+=4-(M+e.bsCount[c])%4;else if(qe===32)M++;else break;i++}let F=i,N;F>=s?N=1:N=
M-C,N>4&&(N=1);let Z=C+N;l=e.push("list_item_open","li",1),l.markup=String.fromCharCode(f);let Ee=[c,0];l.map=Ee,m&&(l.info=e.src.slice(a,p-1));let be=e.tight,_e=e.
tShift[c],he=e.sCount[c],de=e.listIndent;if(e.listIndent=e.blkIndent,e.blkIndent=Z,e.tight=!0,e.tShift[c]=F-e.bMarks[c],e.sCount[c]=M,F>=s&&e.isEmpty(c+1)?e.line=
Math.min(e.line+2,n):e.md.block.tokenize(e,c,n),(!e.tight||x)&&(u=!1),x=e.line-c>1&&e.isEmpty(e.line-1),e.blkIndent=e.listIndent,e.listIndent=de,e.tShift[c]=_e,
e.sCount[c]=he,e.tight=be,l=e.push("list_item_close","li",-1),l.markup=String.fromCharCode(f),c=e.line,Ee[1]=c,c>=n||e.sCount[c]<e.blkIndent||e.sCount[c]-e.blkIndent>=
4)break;let Wr=!1;for(let qe=0,Da=y.length;qe<Da;qe++)if(y[qe](e,c,n,!0)){Wr=!0;break}if(Wr)break;if(m){if(p=Ws(e,c),p<0)break;a=e.bMarks[c]+e.tShift[c]}else if(p=
Us(e,c),p<0)break;if(f!==e.src.charCodeAt(p-1))break}return m?l=e.push("ordered_list_close","ol",-1):l=e.push("bullet_list_close","ul",-1),l.markup=String.fromCharCode(
f),w[1]=c,e.line=c,e.parentType=D,u&&ku(e,k),!0}var yr=999;function wu(e){let t=e.length;for(let n=0;n<e.length-1;n++){let r=e.charCodeAt(n);if(r<55296||r>56319)
continue;let s=e.charCodeAt(n+1);s>=56320&&s<=57343&&(t--,n++)}return t}function wt(e,t){return Math.min(e.eMarks[t]+1,e.src.length)}function wn(e,t){let n=e.lineMax;
if(t>=n||e.isEmpty(t))return-1;let r=!1;if(e.sCount[t]-e.blkIndent>3&&(r=!0),e.sCount[t]<0&&(r=!0),!r){let s=e.md.block.ruler.getRules("reference"),i=e.parentType;
e.parentType="reference";let a=!1;for(let l=0,c=s.length;l<c;l++)if(s[l](e,t,n,!0)){a=!0;break}if(e.parentType=i,a)return-1}return e.bMarks[t]+e.tShift[t]}function _u(e,t,n,r){
let s=e.src,i=e.bMarks[t]+e.tShift[t],a=t+1;if(e.sCount[t]-e.blkIndent>=4||s.charCodeAt(i)!==91)return!1;let l=wt(e,t),c="",u=-1,d=++i;for(;i<l;){if(c.length+i-
d>yr*2)return!1;let F=s.charCodeAt(i);if(F===91)return!1;if(F===93){u=i;break}if(F===92&&(F=s.charCodeAt(++i)),F===10&&i<l){let N=wn(e,a);if(N<0)return!1;c+=s.slice(
d,l),i=d=N,l=wt(e,a++);continue}i++}if(u<0||s.charCodeAt(u+1)!==58||(c+=s.slice(d,u),c.length>yr&&wu(c)>yr))return!1;for(i=u+2;i<l;){let F=s.charCodeAt(i);if(F===
10){let N=wn(e,a);if(N<0)break;i=N,l=wt(e,a++)}else if(j(F))i++;else break}let m=e.md.helpers.parseLinkDestination(s,i,l);if(!m.ok)return!1;let h=e.md.normalizeLink(
m.str);if(!e.md.validateLink(h))return!1;i=m.pos;let p=i,f=l,k=a;for(;i<l;){let F=s.charCodeAt(i);if(F===10){let N=wn(e,a);if(N<0)break;i=N,l=wt(e,a++)}else if(j(
F))i++;else break}let w=i,x=e.md.helpers.parseLinkTitle(s,i,l);for(;x.can_continue;){let F=wn(e,a);if(F<0)break;i=F,l=wt(e,a++),x=e.md.helpers.parseLinkTitle(s,
i,l,x)}let y;for(w!==p&&x.ok?(y=x.str,i=x.pos):(y="",i=p,l=f,a=k);i<l&&j(s.charCodeAt(i));)i++;if(i<l&&s.charCodeAt(i)!==10&&y)for(y="",i=p,l=f,a=k;i<l&&j(s.charCodeAt(
i));)i++;if(i<l&&s.charCodeAt(i)!==10)return!1;let D=yn(c);if(!D)return!1;if(r)return!0;typeof e.env.references>"u"&&(e.env.references={}),typeof e.env.references[D]>
"u"&&(e.env.references[D]={title:y,href:h});let C=e.push("reference_definition","",0);C.map=[t,a],C.hidden=!0;let M=Object.create(null);return M.label=D,C.meta=
M,e.line=a,!0}var yu=["address","article","aside","base","basefont","blockquote","body","caption","center","col","colgroup","dd","details","dialog","dir","div",
"dl","dt","fieldset","figcaption","figure","footer","form","frame","frameset","h1","h2","h3","h4","h5","h6","head","header","hr","html","iframe","legend","li","\
link","main","menu","menuitem","nav","noframes","ol","optgroup","option","p","param","search","section","summary","table","tbody","td","tfoot","th","thead","tit\
le","tr","track","ul"],oi=`<[A-Za-z][A-Za-z0-9\\-]*(?:\\s+[a-zA-Z_:][a-zA-Z0-9:._-]*(?:\\s*=\\s*(?:[^"'=<>\`\\x00-\\x20]+|'[^']*'|"[^"]*"))?)*\\s*\\/?>`,si="<\\/\
[A-Za-z][A-Za-z0-9\\-]*\\s*>";new RegExp(`^(?:${oi}|${si}|<!---?>|<!--(?:[^-]|-[^-]|--[^>])*-->|<[?][\\s\\S]*?[?]>|<![A-Za-z][^>]*>|<!\\[CDATA\\[[\\s\\S]*?\\]\\]>)`);
var ii=new RegExp(`^(?:${oi}|${si})`),Xe=[[/^<(script|pre|style|textarea)(?=(\s|>|$))/i,/<\/(script|pre|style|textarea)>/i,!0],[/^<!--/,/-->/,!0],[/^<\?/,/\?>/,
!0],[/^<![A-Za-z]/,/>/,!0],[/^<!\[CDATA\[/,/\]\]>/,!0],[new RegExp(`^</?(${yu.join("|")})(?=(\\s|/?>|$))`,"i"),/^$/,!0],[new RegExp(`${ii.source}\\s*$`),/^$/,!1]];
function xu(e,t,n,r){let s=e.bMarks[t]+e.tShift[t],i=e.eMarks[t];if(e.sCount[t]-e.blkIndent>=4||!e.md.options.html||e.src.charCodeAt(s)!==60)return!1;let a=e.src.
slice(s,i),l=0;for(;l<Xe.length&&!Xe[l][0].test(a);l++);if(l===Xe.length)return!1;if(r)return Xe[l][2];let c=t+1,u=Xe[l][1].test("");if(!Xe[l][1].test(a)){for(;c<
n&&!(e.sCount[c]<e.blkIndent&&(u||!e.isEmpty(c)));c++)if(s=e.bMarks[c]+e.tShift[c],i=e.eMarks[c],a=e.src.slice(s,i),Xe[l][1].test(a)){a.length!==0&&c++;break}}e.
line=c;let d=e.push("html_block","",0);return d.map=[t,c],d.content=e.getLines(t,c,e.blkIndent,!0),!0}function Su(e,t,n,r){let s=e.bMarks[t]+e.tShift[t],i=e.eMarks[t];
if(e.sCount[t]-e.blkIndent>=4)return!1;let a=e.src.charCodeAt(s);if(a!==35||s>=i)return!1;let l=1;for(a=e.src.charCodeAt(++s);a===35&&s<i&&l<=6;)l++,a=e.src.charCodeAt(
++s);if(l>6||s<i&&!j(a))return!1;if(r)return!0;i=e.skipSpacesBack(i,s);let c=e.skipCharsBack(i,35,s);c>s&&j(e.src.charCodeAt(c-1))&&(i=c),e.line=t+1;let u=e.push(
"heading_open",`h${l}`,1);u.markup="########".slice(0,l),u.map=[t,e.line];let d=e.push("inline","",0);d.content=xn(e.src.slice(s,i)),d.map=[t,e.line],d.children=
[];let m=e.push("heading_close",`h${l}`,-1);return m.markup="########".slice(0,l),!0}function Cu(e,t,n){let r=e.md.block.ruler.getRules("paragraph");if(e.sCount[t]-
e.blkIndent>=4)return!1;let s=e.parentType;e.parentType="paragraph";let i=0,a,l=t+1;for(;l<n&&!e.isEmpty(l);l++){if(e.sCount[l]-e.blkIndent>3)continue;if(e.sCount[l]>=
e.blkIndent){let p=e.bMarks[l]+e.tShift[l],f=e.eMarks[l];if(p<f&&(a=e.src.charCodeAt(p),(a===45||a===61)&&(p=e.skipChars(p,a),p=e.skipSpaces(p),p>=f))){i=a===61?
1:2;break}}if(e.sCount[l]<0)continue;let h=!1;for(let p=0,f=r.length;p<f;p++)if(r[p](e,l,n,!0)){h=!0;break}if(h)break}if(!i)return e.parentType=s,!1;let c=xn(e.
getLines(t,l,e.blkIndent,!1));e.line=l+1;let u=e.push("heading_open",`h${i}`,1);u.markup=String.fromCharCode(a),u.map=[t,e.line];let d=e.push("inline","",0);d.content=
c,d.map=[t,e.line-1],d.children=[];let m=e.push("heading_close",`h${i}`,-1);return m.markup=String.fromCharCode(a),e.parentType=s,!0}function Eu(e,t,n){let r=e.
md.block.ruler.getRules("paragraph"),s=e.parentType,i=t+1;for(e.parentType="paragraph";i<n&&!e.isEmpty(i);i++){if(e.sCount[i]-e.blkIndent>3||e.sCount[i]<0)continue;
let u=!1;for(let d=0,m=r.length;d<m;d++)if(r[d](e,i,n,!0)){u=!0;break}if(u)break}let a=xn(e.getLines(t,i,e.blkIndent,!1));e.line=i;let l=e.push("paragraph_open",
"p",1);l.map=[t,e.line];let c=e.push("inline","",0);return c.content=a,c.map=[t,e.line],c.children=[],e.push("paragraph_close","p",-1),e.parentType=s,!0}var _n=[
["table",fu,["paragraph","reference"]],["code",mu],["fence",hu,["paragraph","reference","blockquote","list"]],["blockquote",gu,["paragraph","reference","blockqu\
ote","list"]],["hr",bu,["paragraph","reference","blockquote","list"]],["list",vu,["paragraph","reference","blockquote"]],["reference",_u],["html_block",xu,["par\
agraph","reference","blockquote"]],["heading",Su,["paragraph","reference","blockquote"]],["lheading",Cu],["paragraph",Eu]],ai=class{constructor(){A(this,"ruler",
new Et),A(this,"State",ri);for(let e=0;e<_n.length;e++)this.ruler.push(_n[e][0],_n[e][1],{alt:(_n[e][2]||[]).slice()})}tokenize(e,t,n){let r=this.ruler.getRules(
""),s=r.length,i=e.md.options.maxNesting,a=t,l=!1;for(;a<n&&(e.line=a=e.skipEmptyLines(a),!(a>=n||e.sCount[a]<e.blkIndent));){if(e.level>=i){e.line=n;break}let c=e.
line,u=!1;for(let d=0;d<s;d++)if(u=r[d](e,a,n,!1),u){if(c>=e.line)throw new Error("block rule didn't increment state.line");break}if(!u)throw new Error("none of\
 the block rules matched");e.tight=!l,e.isEmpty(e.line-1)&&(l=!0),a=e.line,a<n&&e.isEmpty(a)&&(l=!0,a++,e.line=a)}}parse(e,t,n,r){if(!e)return;let s=new this.State(
e,t,n,r);this.tokenize(s,s.line,s.lineMax)}},li=class{constructor(e,t,n,r){A(this,"pos",0),A(this,"level",0),A(this,"pending",""),A(this,"pendingLevel",0),A(this,
"cache",{}),A(this,"backticks",{}),A(this,"backticksScanned",!1),A(this,"skipHtmlSpecial",!1),A(this,"linkLevel",0),A(this,"delimiters",[]),A(this,"_prev_delimi\
ters",[]),A(this,"Token",ze),this.src=e,this.env=n,this.md=t,this.tokens=r,this.tokens_meta=Array(r.length),this.posMax=this.src.length}pushPending(){let e=new ze(
"text","",0);return e.content=this.pending,e.level=this.pendingLevel,this.tokens.push(e),this.pending="",e}push(e,t,n){this.pending&&this.pushPending();let r=new ze(
e,t,n),s;return n<0&&(this.level--,this.delimiters=this._prev_delimiters.pop()),r.level=this.level,n>0&&(this.level++,this._prev_delimiters.push(this.delimiters),
this.delimiters=[],s={delimiters:this.delimiters}),this.pendingLevel=this.level,this.tokens.push(r),this.tokens_meta.push(s),r}scanDelims(e,t){let n=this.posMax,
r=this.src.charCodeAt(e),s;if(e===0)s=32;else if(e===1)s=this.src.charCodeAt(0),(s&63488)===55296&&(s=65533);else if(s=this.src.charCodeAt(e-1),(s&64512)===56320){
let f=this.src.charCodeAt(e-2);s=(f&64512)===55296?65536+(f-55296<<10)+(s-56320):65533}else(s&64512)===55296&&(s=65533);let i=e;for(;i<n&&this.src.charCodeAt(i)===
r;)i++;let a=i-e,l=i<n?this.src.charCodeAt(i):32;if((l&64512)===55296){let f=this.src.charCodeAt(i+1);l=(f&64512)===56320?65536+(l-55296<<10)+(f-56320):65533}else
(l&64512)===56320&&(l=65533);let c=St(s)||xt(s),u=St(l)||xt(l),d=yt(s),m=yt(l),h=!m&&(!u||d||c),p=!d&&(!c||m||u);return{can_open:h&&(t||!p||c),can_close:p&&(t||
!h||u),length:a}}};function Du(e){switch(e){case 10:case 33:case 35:case 36:case 37:case 38:case 42:case 43:case 45:case 58:case 60:case 61:case 62:case 64:case 91:case 92:case 93:case 94:case 95:case 96:case 123:case 125:case 126:
return!0;default:return!1}}function Au(e,t){let n=e.pos;for(;n<e.posMax&&!Du(e.src.charCodeAt(n));)n++;return n===e.pos?!1:(t||(e.pending+=e.src.slice(e.pos,n)),
e.pos=n,!0)}function Tu(e){return e>=65&&e<=90||e>=97&&e<=122}function Fu(e){return e>=65&&e<=90||e>=97&&e<=122||e>=48&&e<=57||e===43||e===45||e===46}function Pu(e,t){
if(!e.md.options.linkify||e.linkLevel>0)return!1;let n=e.pos,r=e.posMax;if(n+3>r||e.src.charCodeAt(n)!==58||e.src.charCodeAt(n+1)!==47||e.src.charCodeAt(n+2)!==
47)return!1;let s=n-Math.min(10,e.pending.length,n),i=n;for(;i>s&&Fu(e.src.charCodeAt(i-1));)i--;if(i===n||!Tu(e.src.charCodeAt(i)))return!1;let a=n-i,l=e.md.linkify.
matchAtStart(e.src.slice(i));if(!l)return!1;let c=l.url;if(c.length<=a)return!1;let u=c.length;for(;u>0&&c.charCodeAt(u-1)===42;)u--;u!==c.length&&(c=c.slice(0,
u));let d=e.md.normalizeLink(c);if(!e.md.validateLink(d))return!1;if(!t){e.pending=e.pending.slice(0,-a);let m=e.push("link_open","a",1);m.attrs=[["href",d]],m.
markup="linkify",m.info="auto";let h=e.push("text","",0);h.content=e.md.normalizeLinkText(c);let p=e.push("link_close","a",-1);p.markup="linkify",p.info="auto"}
return e.pos+=c.length-a,!0}function Mu(e,t){let n=e.pos;if(e.src.charCodeAt(n)!==10)return!1;let r=e.pending.length-1,s=e.posMax;if(!t)if(r>=0&&e.pending.charCodeAt(
r)===32)if(r>=1&&e.pending.charCodeAt(r-1)===32){let i=r-1;for(;i>=1&&e.pending.charCodeAt(i-1)===32;)i--;e.pending=e.pending.slice(0,i),e.push("hardbreak","br",
0)}else e.pending=e.pending.slice(0,-1),e.push("softbreak","br",0);else e.push("softbreak","br",0);for(n++;n<s&&j(e.src.charCodeAt(n));)n++;return e.pos=n,!0}var Er=[];
for(let e=0;e<256;e++)Er.push(0);"\\!\"#$%&'()*+,./:;<=>?@[]^_`{|}~-".split("").forEach(function(e){Er[e.charCodeAt(0)]=1});function Bu(e,t){let n=e.pos,r=e.posMax;
if(e.src.charCodeAt(n)!==92||(n++,n>=r))return!1;let s=e.src.charCodeAt(n);if(s===10){for(t||e.push("hardbreak","br",0),n++;n<r&&(s=e.src.charCodeAt(n),!!j(s));)
n++;return e.pos=n,!0}if(s===32){if(!t){let l=e.push("text_special","",0);l.content="\\",l.markup="\\",l.info="escape"}return e.pos=n,!0}let i=e.src[n];if(s>=55296&&
s<=56319&&n+1<r){let l=e.src.charCodeAt(n+1);l>=56320&&l<=57343&&(i+=e.src[n+1],n++)}let a="\\"+i;if(!t){let l=e.push("text_special","",0);s<256&&Er[s]!==0?l.content=
i:l.content=a,l.markup=a,l.info="escape"}return e.pos=n+1,!0}function $u(e){let t={},n=0;for(;(n=e.indexOf("`",n))!==-1;){let r=n;for(;e.charCodeAt(++n)===96;);
t[n-r]=r}return t}function Ou(e,t){var n;let r=e.pos;if(e.src.charCodeAt(r)!==96)return!1;let s=e.posMax,i=r+1;for(;i<s&&e.src.charCodeAt(i)===96;)i++;let a=e.src.
slice(r,i),l=a.length;if(e.backticksScanned||(e.backticks=$u(e.src),e.backticksScanned=!0),((n=e.backticks[l])!==null&&n!==void 0?n:-1)>=i){let c=i,u;for(;(u=e.
src.indexOf("`",c))!==-1&&u<s;){for(c=u+1;e.src.charCodeAt(c)===96;)c++;if(c>s)break;if(c-u===l){if(!t){let d=e.push("code_inline","code",0);d.markup=a;let m=e.
src.slice(i,u).replace(/\n/g," ");m.startsWith(" ")&&m.endsWith(" ")&&/[^ ]/.test(m)&&(m=m.slice(1,-1)),d.content=m}return e.pos=c,!0}}}return t||(e.pending+=a),
e.pos=i,!0}function Iu(e,t){let n=e.pos,r=e.src.charCodeAt(n);if(t||r!==126)return!1;let s=e.scanDelims(e.pos,!0),i=s.length,a=String.fromCharCode(r);if(i<2)return!1;
let l;i%2&&(l=e.push("text","",0),l.content=a,i--);for(let c=0;c<i;c+=2)l=e.push("text","",0),l.content=a+a,e.delimiters.push({marker:r,length:0,token:e.tokens.
length-1,end:-1,open:s.can_open,close:s.can_close});return e.pos+=s.length,!0}function qs(e,t){let n,r=[],s=t.length;for(let i=0;i<s;i++){let a=t[i];if(a.marker!==
126||a.end===-1)continue;let l=t[a.end];n=e.tokens[a.token],n.type="s_open",n.tag="s",n.nesting=1,n.markup="~~",n.content="",n=e.tokens[l.token],n.type="s_close",
n.tag="s",n.nesting=-1,n.markup="~~",n.content="",e.tokens[l.token-1].type==="text"&&e.tokens[l.token-1].content==="~"&&r.push(l.token-1)}for(;r.length;){let i=r.
pop(),a=i+1;for(;a<e.tokens.length&&e.tokens[a].type==="s_close";)a++;a--,i!==a&&(n=e.tokens[a],e.tokens[a]=e.tokens[i],e.tokens[i]=n)}}function Lu(e){let t=e.tokens_meta,
n=e.tokens_meta.length;qs(e,e.delimiters);for(let s=0;s<n;s++){var r;let i=(r=t[s])===null||r===void 0?void 0:r.delimiters;i&&qs(e,i)}}var ci={tokenize:Iu,postProcess:Lu};
function Ru(e,t){let n=e.pos,r=e.src.charCodeAt(n);if(t||r!==95&&r!==42)return!1;let s=e.scanDelims(e.pos,r===42);for(let i=0;i<s.length;i++){let a=e.push("text",
"",0);a.content=String.fromCharCode(r),e.delimiters.push({marker:r,length:s.length,token:e.tokens.length-1,end:-1,open:s.can_open,close:s.can_close})}return e.pos+=
s.length,!0}function Hs(e,t){let n=t.length;for(let r=n-1;r>=0;r--){let s=t[r];if(s.marker!==95&&s.marker!==42||s.end===-1)continue;let i=t[s.end],a=r>0&&t[r-1].
end===s.end+1&&t[r-1].marker===s.marker&&t[r-1].token===s.token-1&&t[s.end+1].token===i.token+1,l=String.fromCharCode(s.marker),c=e.tokens[s.token];c.type=a?"st\
rong_open":"em_open",c.tag=a?"strong":"em",c.nesting=1,c.markup=a?l+l:l,c.content="";let u=e.tokens[i.token];u.type=a?"strong_close":"em_close",u.tag=a?"strong":
"em",u.nesting=-1,u.markup=a?l+l:l,u.content="",a&&(e.tokens[t[r-1].token].content="",e.tokens[t[s.end+1].token].content="",r--)}}function Ju(e){let t=e.tokens_meta,
n=e.tokens_meta.length;Hs(e,e.delimiters);for(let s=0;s<n;s++){var r;let i=(r=t[s])===null||r===void 0?void 0:r.delimiters;i&&Hs(e,i)}}var ui={tokenize:Ru,postProcess:Ju};
function Xu(e,t){let n,r,s,i,a="",l="",c=e.pos,u=!0;if(e.src.charCodeAt(e.pos)!==91)return!1;let d=e.pos,m=e.posMax,h=e.pos+1,p=e.md.helpers.parseLinkLabel(e,e.
pos,!0);if(p<0)return!1;let f=p+1;if(f<m&&e.src.charCodeAt(f)===40){for(u=!1,f++;f<m&&(n=e.src.charCodeAt(f),!(!j(n)&&n!==10));f++);if(f>=m)return!1;if(c=f,s=e.
md.helpers.parseLinkDestination(e.src,f,e.posMax),s.ok){for(a=e.md.normalizeLink(s.str),e.md.validateLink(a)?f=s.pos:a="",c=f;f<m&&(n=e.src.charCodeAt(f),!(!j(n)&&
n!==10));f++);if(s=e.md.helpers.parseLinkTitle(e.src,f,e.posMax),f<m&&c!==f&&s.ok)for(l=s.str,f=s.pos;f<m&&(n=e.src.charCodeAt(f),!(!j(n)&&n!==10));f++);}(f>=m||
e.src.charCodeAt(f)!==41)&&(u=!0),f++}if(u){if(typeof e.env.references>"u")return!1;if(f<m&&e.src.charCodeAt(f)===91?(c=f+1,f=e.md.helpers.parseLinkLabel(e,f),f>=
0?r=e.src.slice(c,f++):f=p+1):f=p+1,r||(r=e.src.slice(h,p)),r=yn(r),i=e.env.references[r],!i)return e.pos=d,!1;a=i.href,l=i.title}if(!t){e.pos=h,e.posMax=p;let k=e.
push("link_open","a",1),w=[["href",a]];if(k.attrs=w,l&&w.push(["title",l]),r){let x=Object.create(null);x.label=r,k.meta=x}e.linkLevel++,e.md.inline.tokenize(e),
e.linkLevel--,e.push("link_close","a",-1)}return e.pos=f,e.posMax=m,!0}function zu(e,t){let n,r,s,i,a,l,c,u,d="",m=e.pos,h=e.posMax;if(e.src.charCodeAt(e.pos)!==
33||e.src.charCodeAt(e.pos+1)!==91)return!1;let p=e.pos+2,f=e.md.helpers.parseLinkLabel(e,e.pos+1,!1);if(f<0)return!1;if(i=f+1,i<h&&e.src.charCodeAt(i)===40){for(i++;i<
h&&(n=e.src.charCodeAt(i),!(!j(n)&&n!==10));i++);if(i>=h)return!1;for(u=i,l=e.md.helpers.parseLinkDestination(e.src,i,e.posMax),l.ok&&(d=e.md.normalizeLink(l.str),
e.md.validateLink(d)?i=l.pos:d=""),u=i;i<h&&(n=e.src.charCodeAt(i),!(!j(n)&&n!==10));i++);if(l=e.md.helpers.parseLinkTitle(e.src,i,e.posMax),i<h&&u!==i&&l.ok)for(c=
l.str,i=l.pos;i<h&&(n=e.src.charCodeAt(i),!(!j(n)&&n!==10));i++);else c="";if(i>=h||e.src.charCodeAt(i)!==41)return e.pos=m,!1;i++}else{if(typeof e.env.references>
"u")return!1;if(i<h&&e.src.charCodeAt(i)===91?(u=i+1,i=e.md.helpers.parseLinkLabel(e,i),i>=0?s=e.src.slice(u,i++):i=f+1):i=f+1,s||(s=e.src.slice(p,f)),s=yn(s),a=
e.env.references[s],!a)return e.pos=m,!1;d=a.href,c=a.title}if(!t){r=e.src.slice(p,f);let k=[];e.md.inline.parse(r,e.md,e.env,k);let w=e.push("image","img",0),x=[
["src",d],["alt",""]];if(w.attrs=x,w.children=k,w.content=r,c&&x.push(["title",c]),s){let y=Object.create(null);y.label=s,w.meta=y}}return e.pos=i,e.posMax=h,!0}
var Nu=/^([a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*)$/,Uu=/^([a-zA-Z][a-zA-Z0-9+.-]{1,31}):([^<>\x00-\x20]*)$/;
function Wu(e,t){let n=e.pos;if(e.src.charCodeAt(n)!==60)return!1;let r=e.pos,s=e.posMax;for(;;){if(++n>=s)return!1;let a=e.src.charCodeAt(n);if(a===60)return!1;
if(a===62)break}let i=e.src.slice(r+1,n);if(Uu.test(i)){let a=e.md.normalizeLink(i);if(!e.md.validateLink(a))return!1;if(!t){let l=e.push("link_open","a",1);l.attrs=
[["href",a]],l.markup="autolink",l.info="auto";let c=e.push("text","",0);c.content=e.md.normalizeLinkText(i);let u=e.push("link_close","a",-1);u.markup="autolin\
k",u.info="auto"}return e.pos+=i.length+2,!0}if(Nu.test(i)){let a=e.md.normalizeLink(`mailto:${i}`);if(!e.md.validateLink(a))return!1;if(!t){let l=e.push("link_\
open","a",1);l.attrs=[["href",a]],l.markup="autolink",l.info="auto";let c=e.push("text","",0);c.content=e.md.normalizeLinkText(i);let u=e.push("link_close","a",
-1);u.markup="autolink",u.info="auto"}return e.pos+=i.length+2,!0}return!1}function qu(e){return/^<a[>\s]/i.test(e)}function Hu(e){return/^<\/a\s*>/i.test(e)}function di(e){
let t=e|32;return t>=97&&t<=122}function ju(e,t){let n=e.src,r,s;if(n.startsWith("<!--",t)){if(n.startsWith(">",t+4))return t+5;if(n.startsWith("->",t+4))return t+
6;r=t+4,s="-->"}else if(n.startsWith("<![CDATA[",t))r=t+9,s="]]>";else if(n.charCodeAt(t+1)===63)r=t+2,s="?>";else if(di(n.charCodeAt(t+2)))r=t+3,s=">";else return-1;
if(e.skipHtmlSpecial)return-1;let i=n.indexOf(s,r);return i<0?(e.skipHtmlSpecial=!0,-1):i+s.length}function Vu(e,t){if(!e.md.options.html)return!1;let n=e.posMax,
r=e.pos;if(e.src.charCodeAt(r)!==60||r+2>=n)return!1;let s,i=e.src.charCodeAt(r+1);if(i===33||i===63)s=ju(e,r);else if(i===47||di(i)){let a=e.src.slice(r).match(
ii);s=a?r+a[0].length:-1}else return!1;if(s<0)return!1;if(!t){let a=e.push("html_inline","",0);a.content=e.src.slice(r,s),qu(a.content)&&e.linkLevel++,Hu(a.content)&&
e.linkLevel--}return e.pos=s,!0}var Zu=/^&#((?:x[a-f0-9]{1,6}|[0-9]{1,7}));/i,Ku=/^&([a-z][a-z0-9]{1,31});/i;function Gu(e,t){let n=e.pos,r=e.posMax;if(e.src.charCodeAt(
n)!==38||n+1>=r)return!1;if(e.src.charCodeAt(n+1)===35){let s=e.src.slice(n).match(Zu);if(s){if(!t){let i=s[1][0].toLowerCase()==="x"?parseInt(s[1].slice(1),16):
parseInt(s[1],10),a=e.push("text_special","",0);a.content=Cr(i)?_t(i):_t(65533),a.markup=s[0],a.info="entity"}return e.pos+=s[0].length,!0}}else{let s=e.src.slice(
n).match(Ku);if(s){let i=hr(s[0]);if(i!==s[0]){if(!t){let a=e.push("text_special","",0);a.content=i,a.markup=s[0],a.info="entity"}return e.pos+=s[0].length,!0}}}
return!1}function js(e){let t={},n=e.length;if(!n)return;let r=0,s=-2,i=[];for(let a=0;a<n;a++){let l=e[a];if(i.push(0),(e[r].marker!==l.marker||s!==l.token-1)&&
(r=a),s=l.token,l.length=l.length||0,!l.close)continue;t.hasOwnProperty(l.marker)||(t[l.marker]=[-1,-1,-1,-1,-1,-1]);let c=t[l.marker][(l.open?3:0)+l.length%3],
u=r-i[r]-1,d=u;for(;u>c;u-=i[u]+1){let m=e[u];if(m.marker===l.marker&&m.open&&m.end<0){let h=!1;if((m.close||l.open)&&(m.length+l.length)%3===0&&(m.length%3!==0||
l.length%3!==0)&&(h=!0),!h){let p=u>0&&!e[u-1].open?i[u-1]+1:0;i[a]=a-u+p,i[u]=p,l.open=!1,m.end=a,m.close=!1,d=-1,s=-2;break}}}d!==-1&&(t[l.marker][(l.open?3:0)+
(l.length||0)%3]=d)}}function Yu(e){let t=e.tokens_meta,n=e.tokens_meta.length;js(e.delimiters);for(let s=0;s<n;s++){var r;let i=(r=t[s])===null||r===void 0?void 0:
r.delimiters;i&&js(i)}}function Qu(e){let t,n,r=0,s=e.tokens,i=e.tokens.length;for(t=n=0;t<i;t++)s[t].nesting<0&&r--,s[t].level=r,s[t].nesting>0&&r++,s[t].type===
"text"&&t+1<i&&s[t+1].type==="text"?s[t+1].content=s[t].content+s[t+1].content:(t!==n&&(s[n]=s[t]),n++);t!==n&&(s.length=n)}var xr=[["text",Au],["linkify",Pu],[
"newline",Mu],["escape",Bu],["backticks",Ou],["strikethrough",ci.tokenize],["emphasis",ui.tokenize],["link",Xu],["image",zu],["autolink",Wu],["html_inline",Vu],
["entity",Gu]],Sr=[["balance_pairs",Yu],["strikethrough",ci.postProcess],["emphasis",ui.postProcess],["fragments_join",Qu]],pi=class{constructor(){A(this,"ruler",
new Et),A(this,"ruler2",new Et),A(this,"State",li);for(let e=0;e<xr.length;e++)this.ruler.push(xr[e][0],xr[e][1]);for(let e=0;e<Sr.length;e++)this.ruler2.push(Sr[e][0],
Sr[e][1])}skipToken(e){let t=e.pos,n=this.ruler.getRules(""),r=n.length,s=e.md.options.maxNesting,i=e.cache;if(typeof i[t]<"u"){e.pos=i[t];return}let a=!1;if(e.
level<s){for(let l=0;l<r;l++)if(e.level++,a=n[l](e,!0),e.level--,a){if(t>=e.pos)throw new Error("inline rule didn't increment state.pos");break}}else e.pos=e.posMax;
a||e.pos++,i[t]=e.pos}tokenize(e){let t=this.ruler.getRules(""),n=t.length,r=e.posMax,s=e.md.options.maxNesting;for(;e.pos<r;){let i=e.pos,a=!1;if(e.level<s){for(let l=0;l<
n;l++)if(a=t[l](e,!1),a){if(i>=e.pos)throw new Error("inline rule didn't increment state.pos");break}}if(a){if(e.pos>=r)break;continue}e.pending+=e.src[e.pos++]}
e.pending&&e.pushPending()}parse(e,t,n,r){let s=new this.State(e,t,n,r);this.tokenize(s);let i=this.ruler2.getRules(""),a=i.length;for(let l=0;l<a;l++)i[l](s)}},
ed={default:{options:{html:!1,xhtmlOut:!1,breaks:!1,langPrefix:"language-",linkify:!1,typographer:!1,quotes:"“”‘’",highlight:null,maxNesting:100},components:{
core:{},block:{},inline:{}}},zero:{options:{html:!1,xhtmlOut:!1,breaks:!1,langPrefix:"language-",linkify:!1,typographer:!1,quotes:"“”‘’",highlight:null,
maxNesting:20},components:{core:{rules:["normalize","block","strip_references","inline","text_join"]},block:{rules:["paragraph"]},inline:{rules:["text"],rules2:[
"balance_pairs","fragments_join"]}}},commonmark:{options:{html:!0,xhtmlOut:!0,breaks:!1,langPrefix:"language-",linkify:!1,typographer:!1,quotes:"“”‘’",highlight:null,
maxNesting:20},components:{core:{rules:["normalize","block","strip_references","inline","text_join"]},block:{rules:["blockquote","code","fence","heading","hr","\
html_block","lheading","list","reference","paragraph"]},inline:{rules:["autolink","backticks","emphasis","entity","escape","html_inline","image","link","newline",
"text"],rules2:["balance_pairs","emphasis","fragments_join"]}}}},td=/^(vbscript|javascript|file|data):/,nd=/^data:image\/(gif|png|jpeg|webp);/,Vs=["http:","http\
s:","mailto:"],we=class{validateLink(e){let t=e.trim().toLowerCase();return td.test(t)?nd.test(t):!0}normalizeLink(e){let t=kt(e,!0);if(t.hostname&&(!t.protocol||
Vs.indexOf(t.protocol)>=0))try{t.hostname=vr.toASCII(t.hostname)}catch{}return t.auth&&(t.auth=Be(t.auth)),t.hostname&&(t.hostname=Be(t.hostname)),t.pathname&&(t.
pathname=Be(t.pathname)),t.search&&(t.search=Be(t.search)),t.hash&&(t.hash=Be(t.hash)),Ye(t)}normalizeLinkText(e){let t=kt(e,!0);if(t.hostname&&(!t.protocol||Vs.
indexOf(t.protocol)>=0))try{t.hostname=vr.toUnicode(t.hostname)}catch{}return bt(Ye(t),bt.defaultChars+"%")}constructor(...e){A(this,"inline",new pi),A(this,"bl\
ock",new ai),A(this,"core",new ni),A(this,"renderer",new Qs),A(this,"linkify",new Fs),A(this,"utils",Sc),A(this,"helpers",Object.assign({},Xc));let[t,n]=e;typeof t==
"string"?(this.configure(t),n&&this.set(n)):(this.configure("default"),this.set(t||{}))}set(e){return Object.assign(this.options,e),this}configure(e){let t;if(typeof e==
"string"){let s=e;if(t=ed[s],!t)throw new Error(`Wrong 'markdown-it' preset "${s}", check name`)}else t=e;if(!t)throw new Error("Wrong `markdown-it` preset, can\
't be empty");t.options&&(this.options={...t.options});let n=t.components;if(n){var r;["core","block","inline"].forEach(i=>{var a;let l=(a=n[i])===null||a===void 0?
void 0:a.rules;l&&this[i].ruler.enableOnly(l)});let s=(r=n.inline)===null||r===void 0?void 0:r.rules2;s&&this.inline.ruler2.enableOnly(s)}return this}enable(e,t=!1){
let n=[];Array.isArray(e)||(e=[e]),["core","block","inline"].forEach(s=>{n=n.concat(this[s].ruler.enable(e,!0))}),n=n.concat(this.inline.ruler2.enable(e,!0));let r=e.
filter(s=>n.indexOf(s)<0);if(r.length&&!t)throw new Error(`MarkdownIt. Failed to enable unknown rule(s): ${r}`);return this}disable(e,t=!1){let n=[];Array.isArray(
e)||(e=[e]),["core","block","inline"].forEach(s=>{n=n.concat(this[s].ruler.disable(e,!0))}),n=n.concat(this.inline.ruler2.disable(e,!0));let r=e.filter(s=>n.indexOf(
s)<0);if(r.length&&!t)throw new Error(`MarkdownIt. Failed to disable unknown rule(s): ${r}`);return this}use(e,...t){return e.apply(e,[this,...t]),this}parse(e,t){
if(typeof e!="string")throw new Error("Input data should be a String");let n=new this.core.State(e,this,t);return this.core.process(n),n.tokens}render(e,t={}){return this.
renderer.render(this.parse(e,t),this.options,t)}parseInline(e,t){let n=new this.core.State(e,this,t);return n.inlineMode=!0,this.core.process(n),n.tokens}renderInline(e,t={}){
return this.renderer.render(this.parseInline(e,t),this.options,t)}};A(we,"Token",ze);A(we,"Ruler",Et);A(we,"Renderer",Qs);A(we,"ParserCore",ni);A(we,"StateCore",
ei);A(we,"ParserBlock",ai);A(we,"StateBlock",ri);A(we,"ParserInline",pi);A(we,"StateInline",li);var fi=Ks(we);var rd=32;function od(){let e=new fi({html:!0,breaks:!0,linkify:!0,maxNesting:100});return e.disable(["reference"]),e.validateLink=()=>!0,e.normalizeLink=t=>t.includes(
"://")?t.replace(/[ <>"`|\\]/g,encodeURIComponent):t,e.normalizeLinkText=t=>t,e.linkify.set({fuzzyLink:!1,fuzzyEmail:!0}).add("ftp:",null).add("//",null).add("w\
ww.",{validate:ad,normalize:ld}),e.inline.State=class extends e.inline.State{scanDelims(t,n){let r=super.scanDelims(t,n);return sd(this.src,t,r.length)&&(r.can_open=
r.can_close=!1),r}},e.block.ruler.before("table","deepest",dd),ud(e),t=>e.parse(t,{})}var mi=od();function sd(e,t,n){let r=e[t];if(r==="~")return n!==2;let s=(e[t-
1]??"")+(e[t+n]??"");return r==="*"&&(n===1&&/^[0-9a-zA-Z]{2}$/.test(s)||n===2&&/^\d{2}$/.test(s))}var id=2e3;function ad(e,t){let n=/^[\w-]+(\.[\w-]+)+[^\s<]*/.
exec(e.slice(t,t+id))?.[0]??"",r=n.split(")").length-n.split("(").length,s=n.length;for(;;){let i=n[s-1]??"";if(i===")"&&r>0)r--,s--;else if(i!==""&&"?!.,:;*_~'\
\"`".includes(i))s-=i===";"?/&\w{1,40};$/.exec(n.slice(Math.max(0,s-42),s))?.[0].length??1:1;else return s}}function ld(e){e.url="http://"+e.url}var cd=2;function ud(e){
let t=e.inline.parse.bind(e.inline),n=0;e.inline.parse=(r,s,i,a)=>{if(n>cd){a.push({type:"text",tag:"",map:null,nesting:0,level:0,children:null,content:r,markup:"",
info:"",hidden:!1,attrGet:()=>null});return}n++;try{t(r,s,i,a)}finally{n--}}}function dd(e,t,n,r){if(r||e.level<rd)return!1;let s=e.push("html_block","",0);return s.
content=e.getLines(t,n,e.blkIndent,!1),s.map=[t,n],e.line=n,!0}function bi(e,t){let n=new Dr(e,t),r=[];for(let s=n.line();s!==null;s=n.line()){let i=t.left;if(i>0?r.push({part:n.outermost(s),at:s,elements:i-t.left}):n.rest=
s,n.rest!==null){r.push({part:o(bs,{text:n.written(n.rest)}),at:n.rest,elements:1});break}}return r}var pd=3,Dr=class{constructor(t,n){this.room=n;this.lines=t.
split(`
`),this.tokens=mi(t)}room;rest=null;at=0;lines;tokens;line(){return this.tokens[this.at]?.map?.[0]??null}written(t,n){return this.lines.slice(t,n).join(`
`)}outermost(t){let n=this.tokens[this.at],r=this.tokens[this.at+1],s=n?.type==="fence"?n.content.trim()==="":n?.type==="heading_open"?r?.content==="":n?.type===
"blockquote_open"&&r?.nesting===-1,i=this.block();return s?gi(this.written(t,this.line()??void 0)):i}next(){let t=this.tokens[this.at++];if(!t)throw new Error("\
the text ends within a block");return t}inline(){let{content:t,children:n}=this.next();return this.at++,lr(t,n??[],this.room)}block(){let t=this.next();switch(this.
room.left--,t.type){case"heading_open":return fd(Number(t.tag.slice(1)),this.inline());case"fence":return this.room.left-=5,o(gt,{text:t.content.replace(/\n$/,""),
language:t.info.trim().split(/\s/)[0]??""});case"code_block":return this.room.left-=5,o(gt,{text:t.content.trimEnd()});case"hr":return o("hr",{});case"blockquot\
e_open":return o("blockquote",{children:this.blocksIn(t)});case"bullet_list_open":return o("ul",{children:this.blocksIn(t)});case"ordered_list_open":return o("o\
l",{start:Number(t.attrGet("start")??1),children:this.blocksIn(t)});case"list_item_open":return this.item(t);case"table_open":return this.table(t);case"html_blo\
ck":return gi(t.content);default:return t.hidden?this.inline():o("p",{children:this.inline()})}}blocksIn(t){let n=[];for(;;){let r=this.tokens[this.at];if(!r||r.
nesting===-1&&r.level===t.level)break;this.room.left<=0&&n.length>0&&(this.rest??=this.line()),this.rest===null?n.push(this.block()):this.at++}return this.at++,
n}item(t){let n=this.tokens[this.at]?.type==="paragraph_open"?this.tokens[this.at+1]:void 0,r=/^\[([ xX])\]\s/.exec(n?.content??"")?.[1],s=n?.children?.[0];return r&&
s?.type==="text"&&(s.content=(r===" "?"☐ ":"☑ ")+s.content.slice(4)),o("li",{children:this.blocksIn(t)})}widthOfRow(){let t=0;for(let n=this.at;n<this.tokens.
length&&this.tokens[n]?.type!=="tr_close";n++)this.tokens[n]?.type==="inline"&&t++;return t}table(t){this.room.left-=pd;let n=this.widthOfRow();n>this.room.left&&
(this.rest??=t.map?.[0]??null);let r=[],s=[];for(;;){let l=this.next();if(l.nesting===-1&&l.level===t.level)break;l.type==="tr_open"&&(this.room.left<n&&(this.rest??=
l.map?.[0]??null),s=[],this.room.left--,this.rest===null&&r.push(s)),!(this.rest!==null||l.type!=="inline")&&(this.room.left--,s.push(lr(l.content,l.children??[],
this.room)))}let[i,...a]=r;return i?o("div",{class:"table",tabIndex:0,role:"region","aria-label":"Table",children:o("table",{children:[o("thead",{children:o("tr",
{children:i.map(l=>o("th",{scope:"col",children:l}))})}),o("tbody",{children:a.map(l=>o("tr",{children:l.map(c=>o("td",{children:c}))}))})]})}):null}},gi=e=>o("\
p",{class:"as-written",children:e.trimEnd()});function fd(e,t){return e===1?o("h3",{class:"large",children:t}):e===2?o("h3",{children:t}):o("h4",{children:t})}var md=4e3,Ce=class extends le{#t="";#n=[];#e=[];#r=0;shouldComponentUpdate(t){return t.text!==this.props.text}render(){let t=this.props.text.replace(/\r\n?/g,`\

`);t.startsWith(this.#t)||(this.#t="",this.#n=[],this.#e=[],this.#r=0);let n=t.slice(this.#t.length),r=bi(n,{left:md-this.#r}),s=r.at(-2);if(s&&s.at>0){this.#t+=
n.split(`
`).slice(0,s.at).join(`
`)+`
`;for(let a of r.splice(0,r.length-2))this.#o(a)}let i=hd([...this.#e,...r.map(a=>a.part)]);return o("div",{class:"markdown",children:[...this.#n,...i].map((a,l)=>o(
Tr,{parts:a},l))})}#o(t){this.#r+=t.elements,this.#e.push(t.part),!(this.#e.length<Ar)&&(this.#n.push(this.#e),this.#e=[])}},Ar=12;function hd(e){let t=[];for(let n=0;n<
e.length;n+=Ar)t.push(e.slice(n,n+Ar));return t}var Tr=class extends le{shouldComponentUpdate(t){return t.parts!==this.props.parts}render(){return o("div",{class:"\
section",children:this.props.parts})}};function ki({of:e,me:t,readJob:n}){return"command"in e?o(vd,{job:e,me:t,read:()=>n(e.id)}):o(bd,{task:e})}var gd={prepared:["waiting","waiting to start"],running:[
"running","working"],waiting:["waiting","waiting for an answer"],done:["ok","done"],failed:["failed","failed"],cancelled:["over","stopped"],lost:["unknown","its\
 session was erased"]};function bd({task:e}){let[t,n]=gd[e.state],r=e.state==="running"&&e.tools?"running "+e.tools.map(v).join(", "):n,s=e.usage.input+e.usage.
output;return o("div",{class:"beside task "+t,role:"group","aria-label":"Sub-agent "+v(e.agent),children:[o("div",{class:"beside-line",children:[o("span",{class:"\
mark","aria-hidden":"true"}),o("span",{children:["Sub-agent ",o("strong",{children:v(e.agent)})]}),o("span",{class:"beside-state",children:e.stopping?"stopping":
r}),!e.ended&&o("span",{class:"faint",children:["for ",o(pe,{at:e.started})]}),e.usage.calls>0&&o("span",{class:"faint",title:R(e.usage.calls,"model call"),children:[
$(s)," tokens"]}),e.state!=="lost"&&o("a",{href:W("chat",e.session),"aria-label":"Open its session: sub-agent "+v(e.agent),children:"Open its session"})]}),e.title&&
o("div",{class:"faint",children:v(e.title)}),e.report&&o("details",{class:"beside-more",children:[o("summary",{children:e.state==="done"?"Its answer":"What it r\
eported"}),o(Ce,{text:e.report}),e.cut&&o("p",{class:"faint",children:"This is only the beginning. The sub-agent's session has the rest."})]})]})}var kd=12;function vd({
job:e,me:t,read:n}){let[r,s]=b(!1),[i,a]=fn(e),l=v(e.command),c=async()=>{await ie(["jobs",e.id]),n()};return o("div",{class:"beside job "+i,role:"group","aria-\
label":"Background job "+l,children:[o("div",{class:"beside-line",children:[o("span",{class:"mark","aria-hidden":"true"}),o("code",{class:"beside-command",children:l}),
o("span",{class:"beside-state",children:a}),e.state==="running"&&o("span",{class:"faint",children:["for ",o(pe,{at:e.started})]}),t.may.admin&&e.state==="runnin\
g"&&!e.stopping&&o(_,{look:"danger",onPress:()=>s(!0),label:"Stop "+l,children:"Stop…"})]}),e.detail&&o("div",{class:"faint",children:v(e.detail)}),e.state===
"running"?o(wd,{job:e}):o(_d,{job:e,read:n}),r&&o(xe,{title:"Stop this job?",confirm:"Stop job",danger:!0,onConfirm:c,onClose:()=>s(!1),children:o(mn,{of:e})})]})}
function wd({job:e}){if(!e.output)return null;let t=e.output.trimEnd().split(`
`);return o(vi,{text:t.slice(-kd).join(`
`),label:"Newest output of "+v(e.command)})}function _d({job:e,read:t}){return e.printed===0?null:o("details",{class:"beside-more",onToggle:r=>{r.currentTarget instanceof
HTMLDetailsElement&&r.currentTarget.open&&e.output===void 0&&t()},children:[o("summary",{children:["Output, ",Q(e.printed)]}),e.output===void 0?o("p",{class:"fa\
int",children:"Loading…"}):o(vi,{text:e.output,label:"Output of "+v(e.command)})]})}function vi({text:e,label:t}){return o("pre",{class:"beside-output",tabIndex:0,
role:"region","aria-label":t,children:v(e)})}var yd={writing:"writing",waiting:"waiting",running:"running",ok:"done",failed:"failed",unknown:"outcome unknown",over:"ended"},Dt=class extends le{drawn="";shouldComponentUpdate(t){
return wi(t)!==this.drawn}render(){return this.drawn=wi(this.props),o(xd,{...this.props})}};function wi({call:e,use:t,result:n,over:r}){let s=e?.progress??"";return JSON.
stringify([r,e?.id,e?.state,e?.brief,s.length,s.slice(-80),e?.error?.code,t?.text.length,t?.done,t?.call,t?.tool,t?.cut,n?.text.length,n?.done,n?.failed,n?.cut])}
function xd({session:e,call:t,use:n,result:r,over:s}){let[i,a]=b(!1),l=n?.tool||t?.tool||"tool",c=Td(n),u=c?Sn(c.others):Fd(n),d=r?Pd(r.text):"",m=Dd(t,n,r,s),h=t?.
error;return o("details",{class:"call "+m,onToggle:p=>p.currentTarget.open&&a(!0),children:[o("summary",{children:[o("span",{class:"mark","aria-hidden":"true"}),
o("span",{class:"call-name",children:v(l)}),o("span",{class:"call-brief",children:v(t?.brief||Md(c?c.others:n?.input,u))}),o("span",{class:"call-state",children:yd[m]})]}),
o("div",{class:"call-body",children:[c&&o("div",{class:"labeled",children:[o("div",{class:"faint",children:["Change",n?.cut&&xi]}),o(Ge,{parts:[{text:v(c.lines)}],
tool:l})]}),u!==""&&o(Fr,{title:"Arguments",text:v(u),cut:n?.cut}),m==="running"&&t?.progress&&o(Fr,{title:"Progress",text:t.progress}),h&&o("p",{class:"call-er\
ror",children:[h.message," ",o("span",{class:"faint",children:["(",h.code,")"]})]}),m==="unknown"&&o("p",{class:"call-error",children:"The call was interrupted.\
 It may or may not have taken effect."}),r&&d!==""&&!(h&&d.includes(h.message))&&o(Fr,{title:"Result",text:d,cut:r.cut}),i&&r&&!r.failed&&Ed(r.text).map(p=>o(Sd,
{session:e,name:p},p))]})]})}var xi=" (shortened; the log has the full text)";function Fr({title:e,text:t,cut:n}){return o("div",{class:"labeled",children:[o("d\
iv",{class:"faint",children:[e,n&&xi]}),o(gt,{text:t})]})}function Sd({session:e,name:t}){return o("figure",{class:"picture",children:[o("figcaption",{class:"fa\
int name",children:v(t)}),o(Yt,{session:e,name:t})]})}var Cd=8;function Ed(e){try{let t=JSON.parse(e),n=Array.isArray(t?.content)?t.content:[],r=[t?.path,...n.map(
s=>s?.path)].filter(s=>typeof s=="string").filter(Gt);return[...new Set(r)].slice(0,Cd)}catch{return[]}}function Dd(e,t,n,r){return e?.error?.code===_i||n?.failed&&
Ad(n.text)===_i?"unknown":n?n.failed?"failed":"ok":e&&e.state!=="running"?e.state==="failed"?"failed":"ok":r?"over":e?"running":t&&!t.done?"writing":"waiting"}var _i="\
outcome_unknown";function Ad(e){return/"code"\s*:\s*"([a-z_]+)"/.exec(e)?.[1]??""}function Td(e){if(e?.input===null||typeof e?.input!="object")return null;let{old_text:t,
new_text:n,patch:r,...s}=e.input;return e.tool==="apply_patch"&&typeof r=="string"?{lines:r,others:s}:e.tool!=="edit_file"||typeof t!="string"||typeof n!="strin\
g"?null:{lines:[...yi("-",t),...yi("+",n)].join(`
`),others:s}}var yi=(e,t)=>t===""?[]:t.replace(/\n$/,"").split(`
`).map(n=>e+n);function Fd(e){if(!e)return"";if(e.input!==void 0)return Sn(e.input);try{return Sn(JSON.parse(e.text))}catch{return e.text}}function Sn(e){return typeof e==
"string"?e:e!==null&&typeof e=="object"&&Object.keys(e).length===0?"":JSON.stringify(e,null,2)}function Pd(e){try{return Sn(JSON.parse(e))}catch{return e}}function Md(e,t){
let r=(e!==null&&typeof e=="object"?Object.values(e).filter(s=>typeof s!="object").join("  "):t).replace(/\s+/g," ").trim();return r.length>160?r.slice(0,160)+"\
…":r}function Ci({session:e,use:t,result:n}){let[r,s]=b(!1),i=Bd(t,n);if(!i)return null;let a=v(i.title||"Canvas");return o("figure",{class:"canvas",children:[o("fig\
caption",{class:"between",children:[o("span",{class:"name",children:a}),r?o(_,{look:"quiet",onPress:()=>s(!1),label:`Close ${a}`,children:"Close"}):o(_,{onPress:()=>s(
!0),label:`Show ${a}`,children:"Show"})]}),r&&o("iframe",{title:a,sandbox:"allow-scripts",referrerpolicy:"no-referrer",src:oe(["sessions",e,"canvases",i.file]),
height:i.height})]})}var Si=".agent/canvas/";function Bd(e,t){if(e.tool!=="canvas"||!t||t.failed)return null;try{let n=JSON.parse(t.text);if(typeof n?.path!="st\
ring"||!n.path.startsWith(Si))return null;let r=typeof n.height=="number"?Math.min(Math.max(n.height,100),2e3):480;return{file:n.path.slice(Si.length),title:typeof n.
title=="string"?n.title:"",height:r}}catch{return null}}var Ne=class extends le{shouldComponentUpdate(t){let n=this.props;return t.turn!==n.turn||t.version!==n.version||t.sent.length!==n.sent.length||t.said.length!==
n.said.length||t.asks.length!==n.asks.length||!$d(t.beside,n.beside)}render(){let{session:t,turn:n,sent:r,said:s,asks:i,beside:a,readJob:l,me:c,numbered:u}=this.
props,d=new Map(n.blocks.filter(k=>k.kind==="tool_result").map(k=>[k.call,k])),{placed:m,rest:h}=Od(i,n),p=k=>k.map(w=>o(ki,{of:w,me:c,readJob:l},w.id)),f=new Set(
n.blocks.filter(k=>k.kind==="tool_use").map(k=>k.call));return o("div",{class:"turn",role:"group","aria-label":"Turn",children:[r.map(k=>o(et,{text:k.text,files:k.
files},k.key)),n.blocks.map(k=>{let w=o(Rd,{session:t,me:c,block:k,turn:n,result:k.call?d.get(k.call):void 0});return o(g,{children:[u&&Id(k)?o("div",{class:"nu\
mbered "+k.kind,"data-n":k.number,children:w}):w,m.get(k)?.map(x=>o(rr,{ask:x,me:c},x.id)),k.kind==="tool_use"&&p(a.filter(x=>x.call===k.call))]},k.number)}),Ld(
n).map(k=>o(Dt,{session:t,call:k,over:Pr(n)},k.id)),p(a.filter(k=>!f.has(k.call))),h.map(k=>o(rr,{ask:k,me:c},k.id)),s.map(k=>o("div",{class:"spoken",children:o(
Ce,{text:k.text})},k.id)),o(zd,{turn:n,told:s.length>0,me:c})]})}};function $d(e,t){return e.length===t.length&&e.every((n,r)=>n===t[r])}function Od(e,t){let n=new Map,
r=[];for(let s of e){let i=t.blocks.find(a=>a.kind==="tool_use"&&a.tool===s.tool&&!n.has(a));i?n.set(i,[s]):r.push(s)}return{placed:n,rest:r}}var Id=e=>e.kind!==
"tool_result"&&(e.kind==="tool_use"||e.kind==="user"||e.text.trim()!==""),Pr=e=>e.state!=="running"&&e.state!=="parked";function Ld(e){return[...e.calls.values()].
filter(t=>!e.blocks.some(n=>n.kind==="tool_use"&&n.call===t.id))}function Rd({session:e,me:t,block:n,turn:r,result:s}){switch(n.kind){case"user":return o(et,{text:n.
text,name:n.name===t.name?"":n.name,cut:n.cut,children:o(At,{of:n.cause===r.id?"":n.cause,me:t})});case"thinking":return n.text.trim()?o(Jd,{block:n}):null;case"\
text":return n.text.trim()?o("div",{class:"answer",children:o(Ce,{text:n.late?"… "+n.text.trimStart():n.text})}):null;case"tool_use":return o(g,{children:[o(Dt,
{session:e,call:r.calls.get(n.call),use:n,result:s,over:Pr(r)}),o(Ci,{session:e,use:n,result:s})]});default:return null}}function At({of:e,me:t}){return t.may.admin&&
e?o("div",{class:"standing",children:o(te,{of:e})}):null}function Jd({block:e}){return o("details",{class:"thought",children:[o("summary",{children:e.done?"Thou\
ght":"Thinking…"}),o(Ce,{text:e.text})]})}function et({text:e,name:t,files:n=[],cut:r,children:s}){return o("div",{class:"said",children:[t&&o("div",{class:"s\
aid-name",children:t}),e&&o("div",{class:"said-text",children:[e,r&&" … (the log has the rest)"]}),n.length>0&&o("ul",{class:"files","aria-label":"Files",children:n.
map((i,a)=>o("li",{class:"file",children:[i.preview&&o("img",{src:i.preview,alt:""}),o("span",{children:i.name})," ",o("span",{class:"faint",children:Q(i.size)})]},
a))}),s]})}function tt({said:e,me:t}){return o(g,{children:e.map(({message:n,spoken:r})=>o("div",{class:"turn",children:[n?o(et,{text:n.text}):r.command&&o(et,{
text:"/"+r.command}),r.operator||r.told?o(Xd,{spoken:r,me:t}):o(g,{children:[o("div",{class:"spoken",children:o(Ei,{spoken:r})}),o(At,{of:r.turn||r.id,me:t})]})]},
r.id))})}function Ei({spoken:{text:e,cut:t}}){return o(g,{children:[o(Ce,{text:e}),t&&o("div",{class:"faint",children:"… (the log has the rest)"})]})}function Xd({
spoken:e,me:t}){let{id:n,operator:r,told:s}=e;return o("div",{class:"said "+(r?"operator":"told"),children:[o("div",{class:"said-name",children:r?o(g,{children:[
"Operator",r.name&&` (${r.name})`]}):o(g,{children:["On behalf of ",s?.name||"somebody"]})}),o(Ei,{spoken:e}),o(At,{of:n,me:t})]})}function zd({turn:e,told:t,me:n}){
let r=Nd(e),s=e.error&&!t&&e.state==="failed"?e.error.message:"";return!r&&!e.usage&&e.compacted===0&&!n.may.admin?null:o("div",{class:"standing "+e.state,children:[
r&&o("span",{class:Pr(e)?"":"pulse",children:r}),s&&o("span",{children:s}),e.compacted>0&&o("span",{title:"The model now sees a summary in place of earlier mess\
ages",children:"summarized earlier messages"}),e.usage&&o(Ud,{usage:e.usage}),n.may.admin&&o(te,{of:e.id})]})}function Nd(e){switch(e.state){case"done":return"";case"\
failed":return"Failed";case"cancelled":return"Stopped";case"parked":return"Waiting for an answer"}let t=e.retry;if(!t)return"Working…";let n=t.to?` ${t.to}`:"",
r=t.after_ms>=1e3?` in ${Math.round(t.after_ms/1e3)} s`:"";return t.to&&t.from&&t.to!==t.from?`${t.from} didn't answer. Trying${n}${r}…`:`Asking the model aga\
in${r} (attempt ${t.attempt})…`}function Ud({usage:e}){let t=e.priced?` · ${ue(e.microdollars)}`:"";return o("span",{title:`${e.model}: ${R(e.calls,"model ca\
ll")}`,children:[$(e.input)," tokens in · ",$(e.output)," out",t]})}function Di({me:e,session:t,title:n,begun:r,onActivity:s}){let[,i]=b(0),[a,l]=b(null),[c,u]=b(!1);P(()=>{let p=new ln(t,()=>i(f=>f+1),e.may.approve||e.may.agent||
e.may.read||e.may.own,e.may.read||e.may.own,r);return l(p),()=>p.close()},[t]);let d=a?.log.running();P(s,[a?.log.moves]);let m=zo(t,e),h=!m&&No(t,e);return o("\
section",{class:"conversation","aria-label":"Conversation",children:[o(Vd,{session:t,title:n,own:m,talk:a,running:d!==void 0,files:c,setFiles:u}),c&&o(Qo,{session:t,
close:()=>u(!1)}),o(Zd,{mark:a?.messages.length??0,children:[o(I,{error:a?.away||a?.problem}),a&&!a.log.ready&&!a.away&&o(fe,{}),a?.log.ready&&a.log.turns.length===
0&&a.log.spoken.length===0&&a.messages.length===0&&o(ce,{children:"No messages yet."}),a?.log.ready&&o(qd,{talk:a,me:e}),a&&o(Wd,{talk:a,me:e})]}),a&&m&&o(qt,{session:t,
running:d!==void 0,onSay:(p,f)=>a.say(p,f),onStop:()=>a.say("/stop",[])},t),a&&h&&o(Wo,{session:t,channel:me(t).channel,onSay:p=>a.sayAsOperator(p)},t),!m&&!h&&
o("p",{class:"reading",children:["This conversation",me(t).channel&&` on ${me(t).channel}`," is read-only. Start a new chat to talk to the agent."]}),o("p",{class:"\
away",role:"status",children:d?"The agent is working":"The agent is done"})]})}function Wd({talk:e,me:t}){let{turns:n}=e.log,r=ht(e.log.asks.values(),d=>d.turn),
s=os(e.log),i=ht(s,d=>d.turn),a=new Set(n.map(d=>d.id)),l=e.aside(s,a),c=ht(l,d=>d.spoken.after),u=e.log.besidesByTurn();return o(g,{children:[o(tt,{said:l.filter(
d=>!a.has(d.spoken.after)),me:t}),e.drawn.all().map(d=>o(g,{children:[o(Ne,{session:e.key,turn:d,version:d.version,sent:e.sentOf(d),said:i.get(d.id)??Ie,asks:r.
get(d.id)??Ie,beside:u.get(d.id)??Ie,readJob:e.readJob,me:t}),c.has(d.id)&&o(tt,{said:c.get(d.id)??Ie,me:t})]},d.id)),e.pending().map(d=>o(jd,{message:d,talk:e,
me:t},d.key))]})}var Ie=[];function qd({talk:e,me:t}){let[n,r]=b(null),[s]=b(()=>new tn);return o(g,{children:[e.mayHaveEarlier()&&o("div",{class:"earlier",children:o(
_,{look:"quiet",onPress:()=>e.readEarlier(),onError:r,children:"Show earlier messages"})}),o(I,{error:n}),e.earlier.map(i=>o(Mr,{part:i,talk:e,besides:e.log.besides,
nearby:s,me:t},i[0]?.id))]})}function Hd(e){let{paddingTop:t,paddingBottom:n}=getComputedStyle(e);return e.getBoundingClientRect().height-parseFloat(t)-parseFloat(
n)}var Mr=class extends le{state={height:0};at=Yr();heights=[];componentDidMount(){this.at.current&&this.props.nearby.add(this.at.current,()=>this.setState({height:0}),
t=>this.clear(t))}clear(t){this.heights=[...this.at.current?.children??[]].map(Hd),this.setState({height:t})}componentDidUpdate(t,{height:n}){if(!(n===0||this.state.
height>0))for(let[r,s]of[...this.at.current?.children??[]].entries())s instanceof HTMLElement&&(s.style.containIntrinsicHeight=`auto ${this.heights[r]??0}px`)}componentWillUnmount(){
this.at.current&&this.props.nearby.leave(this.at.current)}shouldComponentUpdate(t,{height:n}){return t.part!==this.props.part||t.besides!==this.props.besides||n!==
this.state.height}render(){let{part:t,talk:n,me:r}=this.props,{height:s}=this.state;if(s>0)return o("div",{ref:this.at,class:"earlier-part",style:{height:`${s}p\
x`}});let i=n.log.besidesByTurn();return o("div",{ref:this.at,class:"earlier-part",children:t.map(a=>"blocks"in a?o(Ne,{session:n.key,turn:a,version:a.version,sent:Ie,
said:a.said??Ie,asks:a.asks??Ie,beside:i.get(a.id)??Ie,readJob:n.readJob,me:r},a.id):o(tt,{said:[{spoken:a}],me:r},a.id))})}};function jd({message:e,talk:t,me:n}){
return o("div",{class:"pending "+e.state+(e.operator?" operator":""),children:o(et,{text:e.text,name:e.operator?"Operator":"",files:e.files,children:e.state==="\
refused"?o("div",{class:"refused",role:"alert",children:[o("span",{children:["Not sent: ",e.problem]}),o(_,{onPress:()=>{t.send(e)},children:"Send again"}),o(_,
{look:"quiet",onPress:()=>t.drop(e),children:"Discard"})]}):o(g,{children:[o("div",{class:"faint",children:e.state!=="sent"?"Sending…":e.operator?"On its way.":
"Sent. Waiting for the agent."}),o(At,{of:e.id,me:n})]})})})}function Vd({session:e,title:t,own:n,talk:r,running:s,files:i,setFiles:a}){let[l,c]=b(""),{agent:u,
channel:d}=me(e);return o("div",{class:"head",children:[o("a",{class:"back",href:W("chat"),"aria-label":"All sessions",children:"‹"}),o("div",{class:"head-tit\
le",children:[o("h1",{children:t||Fe(e)}),o("div",{class:"faint",children:[u," · ",d,r&&!r.live&&r.log.ready&&!r.away&&o("span",{class:"badge warn",children:" \
reconnecting…"})]})]}),o(_,{look:"quiet",onPress:()=>a(!i),label:i?"Hide files":"Show files",children:"Files"}),n&&r&&o(Eo,{label:"Commands",children:[o(_,{look:"\
quiet",onPress:()=>c("/new"),children:"Start over…"}),o(_,{look:"quiet",disabled:s,onPress:()=>c("/undo"),children:"Undo the last changes…"}),o(_,{look:"qui\
et",disabled:s,onPress:()=>r.say("/compact",[]),children:"Summarize the conversation"})]}),l==="/new"&&o(xe,{title:"Start over?",confirm:"Start over",onConfirm:()=>r?.
say("/new",[]),onClose:()=>c(""),children:"The agent forgets everything said in this session so far. You can still read it."}),l==="/undo"&&o(xe,{title:"Undo th\
e last changes?",confirm:"Undo",danger:!0,onConfirm:()=>r?.say("/undo",[]),onClose:()=>c(""),children:"This restores the session's files to how they were before\
 the last turn that changed any."})]})}function Zd({children:e,mark:t}){let n=O(null),r=O(null),s=O(!0),i=O(0),a=O(!1),[l,c]=b(!1),u=()=>{let h=n.current;h&&(h.
scrollTop=h.scrollHeight,i.current=h.scrollTop)},d=()=>{s.current=!0,u()};P(d,[t]);let m=h=>{let p=n.current;if(!p)return;let f=p.scrollHeight-p.scrollTop-p.clientHeight>=
60;f?(p.scrollTop<i.current||a.current)&&(s.current=!1):s.current=!0,i.current=p.scrollTop,c(!s.current),s.current&&(f||h)&&u()};return P(()=>{if(!r.current)return;
let h=new ResizeObserver(()=>m(!0));return h.observe(r.current),()=>h.disconnect()},[]),ye(()=>{a.current=!1,s.current&&u()}),o("div",{class:"scroll-frame",children:[
o("div",{ref:n,class:"scroll",onScroll:()=>m(!1),onClick:()=>{a.current=!0},tabIndex:0,role:"log","aria-label":"Messages","aria-live":"off",children:o("div",{ref:r,
class:"column",children:e})}),l&&o("button",{type:"button",class:"button newest",onClick:d,children:"Latest ↓"})]})}var Kd=500,Gd=4e3,$r=e=>"seen "+e.name;function Yd(e){try{return JSON.parse(localStorage.getItem($r(e))??"")}catch{return}}function Qd(e,t){let n=Object.entries(
t.looks),s=n.splice(0,Math.max(0,n.length-Kd)).reduce((i,[,a])=>Math.max(i,a.at),t.since);try{localStorage.setItem($r(e),JSON.stringify({since:s,looks:Object.fromEntries(
n)}))}catch{}}var Br=e=>Date.parse(e.updated)||0;function ep(e,t){let n=e.looks[t.key],r=n?.at??e.since;return n?.entries!==t.entries&&Br(t)>r}function Ai(e,t,n){
let[r,s]=b(new Set),[i,a]=b(0),l=O({key:"",until:0});return P(()=>{let c=u=>u.key===$r(e)&&a(d=>d+1);return addEventListener("storage",c),()=>removeEventListener(
"storage",c)},[]),P(()=>()=>{l.current={key:n,until:Date.now()+Gd}},[n]),P(()=>{if(!t)return;let c=Yd(e),u=c??{since:t.reduce((h,p)=>Math.max(h,Br(p)),0),looks:{}},
d=h=>h===n&&!document.hidden||h===l.current.key&&Date.now()<l.current.until,m=t.filter(h=>d(h.key)&&u.looks[h.key]?.entries!==h.entries);for(let h of m)delete u.
looks[h.key],u.looks[h.key]={entries:h.entries,at:Br(h)};(!c||m.length>0)&&Qd(e,u),s(new Set(t.filter(h=>ep(u,h)).map(h=>h.key)))},[t,n,i]),r}var Cn=60;function Ti({me:e,session:t,title:n,at:r}){let[s,i]=b(null),[a,l]=b(null),c=O(new AbortController),u=async(p,f)=>{let{entries:k,last:w}=await tr(t,p-1,
f,c.current.signal);return{entries:k,from:p,to:f,last:w}},d=()=>{l(null),u(Math.max(1,r-Cn),r+Cn).then(i,p=>c.current.signal.aborted||l(p))};P(()=>(d(),()=>c.current.
abort()),[]);let m=async p=>{let f=await u(Math.max(1,p.from-Cn),p.from-1);i({...p,entries:[...f.entries,...p.entries],from:f.from})},h=async p=>{let f=await u(
p.to+1,p.to+Cn);i({...p,entries:[...p.entries,...f.entries],to:f.to,last:f.last})};return o("section",{class:"conversation","aria-label":"Conversation",children:[
o("div",{class:"head",children:[o("a",{class:"back",href:W("chat"),"aria-label":"All sessions",children:"‹"}),o("div",{class:"head-title",children:[o("h1",{children:n||
Fe(t)}),o("div",{class:"faint",children:"An earlier part of the conversation"})]}),o("a",{class:"button",href:W("chat",t),children:"Latest messages"})]}),o("div",
{class:"scroll-frame",children:o("div",{class:"scroll",tabIndex:0,role:"log","aria-label":"Messages","aria-live":"off",children:o("div",{class:"column",children:[
o(I,{error:a,again:d}),!s&&!a&&o(fe,{}),s&&s.from>1&&o("div",{class:"earlier",children:o(_,{look:"quiet",onPress:()=>m(s),onError:l,children:"Show earlier messa\
ges"})}),s&&o(tp,{entries:s.entries,session:t,at:r,me:e}),s&&!s.last&&o("div",{class:"earlier",children:o(_,{look:"quiet",onPress:()=>h(s),onError:l,children:"S\
how later messages"})})]})})})]})}function tp({entries:e,session:t,at:n,me:r}){let s=O(null),i=nr(e,t,!0);return ye(()=>{let a=[...s.current?.querySelectorAll("\
[data-n]")??[]],l=a.findLast(c=>Number(c.dataset.n)<=n)??a[0];l&&(l.classList.add("sought"),l.tabIndex=-1,l.focus({preventScroll:!0}),l.scrollIntoView({block:"c\
enter"}))},[]),o("div",{ref:s,class:"past",children:[i.length===0&&o(ce,{children:"These messages have been erased."}),i.map(a=>"blocks"in a?o(Ne,{session:t,turn:a,
version:a.blocks.length,sent:[],said:a.said??[],asks:a.asks??[],beside:[],readJob:()=>{},me:r,numbered:!0},a.id):o(tt,{said:[{spoken:a}],me:r},a.id))]})}var np=2,rp=300;function Fi(e){return e.trim().length>=np}function Pi({words:e,shown:t}){let[n,r]=b("");return P(()=>{let s=setTimeout(()=>r(e),rp);return()=>clearTimeout(
s)},[e]),o("section",{class:"found","aria-label":"Messages",children:[o("h2",{children:"What was said"}),n?o(op,{words:n,stale:n!==e,shown:t}):o(fe,{})]})}function op({
words:e,stale:t,shown:n}){let{value:r,error:s,again:i}=L(l=>S(["search"],{q:e,limit:20},l).then(({hits:c})=>({words:e,hits:c})),e),a=!t&&r?.words===e;return o("\
div",{"aria-busy":!a&&!s,children:[o(I,{error:!t&&s,again:i}),!r&&!s&&o(fe,{}),a&&r.hits.length===0&&o(ce,{children:"No messages found with these words."}),o("u\
l",{children:r?.hits.map(l=>o(sp,{hit:l,current:`${l.session} ${l.n}`===n},`${l.session} ${l.n}`))})]})}function sp({hit:e,current:t}){return o("li",{children:[
o("a",{href:W("chat",e.session,String(e.n)),"aria-current":t?"page":void 0,children:[o("span",{class:"passage",children:e.text}),e.untrusted&&o("span",{class:"b\
adge warn",children:"strangers may have written it"}),o("span",{class:"line faint",children:[o("span",{class:"line-title",children:[ip(e)," · ",e.title||Fe(e.session)]}),
o(T,{at:e.at})]})]}),e.link&&vs(e.link)&&o("a",{class:"there",href:e.link,target:"_blank",rel:"noopener noreferrer","aria-label":`Open where it was said: ${e.text.
slice(0,60)}`,children:"Open where it was said"})]})}function ip(e){return e.kind==="text"?"agent":e.kind==="summary"?"summary":e.tool||e.name||e.person||e.kind}var ap=3e4;function Mi(e){let[t,n]=b({running:new Set,waiting:new Set}),r=O(()=>{});return Kt(["turn_start","parked","turn_complete","turn_error","ask","ask_res\
olved"],()=>r.current()),P(()=>{let s=new AbortController,i=!1,a=!1;r.current=()=>{s.signal.aborted||(a=i,!i&&(i=!0,lp(e,s.signal).then(n,c=>s.signal.aborted||n(
u=>({...u,error:je(c)}))).finally(()=>{i=!1,a&&r.current()})))},r.current();let l=setInterval(()=>!document.hidden&&r.current(),ap);return()=>{s.abort(),clearInterval(
l)}},[]),{...t,again:()=>r.current()}}async function lp(e,t){let n=S(["sessions"],{order:"desc",limit:200},t),r=e.may.read?S(["status"],{},t):Promise.resolve(void 0),
[{sessions:s},i]=await Promise.all([n,r]);return{sessions:s,running:new Set(i?.turns?.list.map(a=>a.session)),waiting:new Set(i?.asks?.list.map(a=>a.session))}}
function Bi({known:e,unread:t,shown:n,at:r}){let[s,i]=b(""),{sessions:a,error:l}=e,c=s.trim().toLowerCase(),u=a?.filter(d=>!c||`${d.title??""} ${d.key}`.toLowerCase().
includes(c));return o("nav",{class:"sessions","aria-label":"Sessions",children:[o("div",{class:"sessions-top",children:[o("input",{type:"search","aria-label":"F\
ilter sessions and search messages",placeholder:"Search",value:s,onInput:d=>i(d.currentTarget.value)}),o("a",{class:"button main",href:W("chat"),"aria-current":n===
""?"page":void 0,children:"New chat"})]}),o(I,{error:l}),!a&&!l&&o(fe,{}),u?.length===0&&o(ce,{children:c?"No matching sessions.":"No conversations yet."}),o("u\
l",{children:u?.map(d=>o(cp,{session:d,current:d.key===n,known:e,unread:t.has(d.key)},d.key))}),Fi(s)&&o(Pi,{words:s.trim(),shown:r>0?`${n} ${r}`:""})]})}function cp({
session:e,current:t,known:n,unread:r}){let{agent:s,channel:i}=me(e.key),a=n.waiting.has(e.key),l=!a&&n.running.has(e.key);return o("li",{children:o("a",{href:W(
"chat",e.key),"aria-current":t?"page":void 0,children:[o("span",{class:"line",children:[r&&o("span",{class:"unread",role:"img","aria-label":"new"}),o("span",{class:"\
line-title"+(r?" strong":""),children:e.title||Fe(e.key)}),a&&o("span",{class:"badge warn",children:"waiting"}),l&&o("span",{class:"dot",role:"img","aria-label":"\
working"})]}),o("span",{class:"line faint",children:[o("span",{children:[i,s!=="main"&&` · ${s}`]}),o(T,{at:e.updated})]})]})})}function $i({me:e,rest:t}){let n=t[0]??"",r=Number(t[1])||0,s=Mi(e),i=Ai(e,s.sessions,n),a=O(new Map),l=s.sessions?.find(u=>u.key===n)?.title??"",c=(u,d)=>{let m=$o(
e);a.current.set(m,[pt(m,u,d)]),Te("chat",m)};return o("div",{class:"chat "+(n?"one":"all"),children:[o(Bi,{known:s,unread:i,shown:n,at:r}),n&&r>0?o(Ti,{me:e,session:n,
title:l,at:r},n+" "+r):n?o(Di,{me:e,session:n,title:l,begun:a.current.get(n)??[],onActivity:s.again},n):o(up,{mayTalk:e.may.agent,onSay:c})]})}function up({mayTalk:e,
onSay:t}){return e?o("section",{class:"conversation beginning","aria-label":"New chat",children:[o("div",{class:"hello",children:[o("h1",{children:"What can the\
 agent do for you?"}),o("p",{class:"faint",children:"Your first message starts a new session. Press Enter to send, Shift+Enter for a new line."})]}),o(qt,{session:"",
running:!1,onSay:t,onStop:()=>{}})]}):o("section",{class:"conversation",children:o("p",{class:"empty",children:"Select a session to read it."})})}var dp={builtin:"built in",mcp:"MCP server",skill:"skill"},Oi=160;function Ii({me:e}){let n=L(r=>S(["status"],{brief:!0},r),"").value?.role!=="gateway";return o(
X,{title:"Agents",about:"What the bot has: its agents, their tools and skills, and where they may send messages.",children:[!n&&o("p",{class:"note",children:"A \
gateway serves this page. It runs no turns, so it can't say which tools work where turns run, and it lists no skills."}),o(pp,{works:n}),o(fp,{}),e.may.admin&&o(
"p",{class:"aside",children:["To accept new tools of MCP servers, see ",o("a",{href:W("mcp"),children:"MCP servers"}),"."]}),e.may.admin&&n&&o(mp,{}),o(hp,{})]})}
function pp({works:e}){let t=L(n=>S(["agents"],{},n),"");return o(ee,{read:t,rows:n=>n.agents,label:"Agents",id:n=>n.name,empty:"There are no agents.",columns:[
{title:"Agent",cell:n=>o(g,{children:[o("strong",{children:o(E,{of:n.name})})," ",e&&!n.answers&&o(B,{look:"bad",children:"no model"})]})},{title:"Models",cell:n=>o(
nt,{of:n.models.map(r=>r.name??r.setting)})},{title:"Capabilities",cell:n=>n.capabilities.length>0?n.capabilities.join(", "):"none"},{title:"Tools",cell:n=>$(n.
tools.length),number:!0},{title:"May message",cell:n=>o(nt,{of:n.may_message})},{title:"Cap per day",cell:n=>n.microdollars_day?ue(n.microdollars_day):"none",number:!0}]})}
function nt({of:e}){return e.length>0?o(E,{of:e.join(", ")}):o(g,{children:"none"})}function fp(){let[e,t]=b(""),n=L(r=>S(["tools"],{},r),"");return o(U,{title:"\
Tools",wide:!0,children:[o(Ht,{label:"Find tools",value:e,set:t}),o(ee,{read:n,rows:r=>r.tools.filter(s=>jt(e,s.name,s.description,s.permission??"",...s.agents)),
label:"Tools that agents have; calls are those in this process since it started",id:r=>r.name,empty:e?"No matching tools.":"No agent has any tools.",columns:[{title:"\
Tool",cell:r=>o(g,{children:[o("code",{children:v(r.name)}),o("br",{}),o("span",{class:"aside",children:dp[r.origin]??r.origin})]})},{title:"Needs",cell:r=>r.permission??
"nothing"},{title:"Agents",cell:r=>o(nt,{of:r.agents})},{title:"Calls",cell:r=>$(r.calls),number:!0},{title:"Failed",cell:r=>$(r.failed),number:!0},{title:"Desc\
ription",cell:r=>o(Li,{of:r.description})}]})]})}function Li({of:e}){let t=v(e);return t.length<=Oi?o("span",{class:"saying",children:t}):o("details",{children:[
o("summary",{children:[t.slice(0,Oi),"…"]}),o("span",{class:"saying",children:t})]})}function mp(){let e=L(t=>S(["skills"],{},t),"");return o(U,{title:"Skills",
wide:!0,children:o(ee,{read:e,rows:t=>t.skills,label:"Your skills",id:t=>t.name,empty:"You have no skills. See docs/skills.md to add one.",columns:[{title:"Skil\
l",cell:t=>o(g,{children:[o("strong",{children:o(E,{of:t.name})})," ",t.trusted&&o(B,{look:"good",children:"trusted"})]})},{title:"Agents",cell:t=>o(nt,{of:t.agents})},
{title:"Tools",cell:t=>o(nt,{of:t.tools})},{title:"Folder",cell:t=>o("code",{class:"name",children:v(t.folder)})},{title:"Description",cell:t=>o(Li,{of:t.description})}]})})}
function hp(){let e=L(t=>S(["targets"],{},t),"");return o(U,{title:"Targets",wide:!0,children:o(ee,{read:e,rows:t=>t.targets,label:"Targets of messages",id:t=>t.
name,empty:"No targets are configured. A target is a name for one or more addresses.",columns:[{title:"Target",cell:t=>o("strong",{children:o(E,{of:t.name})})},
{title:"Addresses",cell:t=>o(nt,{of:t.to})}]})})}function Ri({decided:e}){let t=L(n=>S(["audit"],{kind:"approval",order:"desc",limit:20},n),String(e));return o(U,{title:"Recent decisions",wide:!0,children:o(ee,
{read:t,rows:n=>n.records,label:"Decisions made on this page and by programs, newest first",id:n=>String(n.id),empty:"No decisions here yet. For decisions that \
people made in chats, see the tool calls in the audit.",columns:[{title:"When",cell:n=>o(T,{at:n.at})},{title:"Who",cell:n=>o(E,{of:n.by})},{title:"Decision",cell:n=>o(
B,{look:n.result==="denied"?"bad":"good",children:v(n.result)})},{title:"What",cell:n=>o(g,{children:[n.tool&&o("code",{children:v(n.tool)})," ",o("span",{class:"\
aside",children:o(E,{of:n.detail})})]})},{title:"Session",cell:n=>o(V,{of:n.session})}]})})}var gp=40;function Ji({me:e,rest:t}){let n=t[0]??"",r=ne(),[s,i]=b(0),a=z(u=>S(["asks"],{},u),"",20,["ask","ask_resolved"]),l=a.value?.asks,c=u=>{r.say(bp(u)),i(
d=>d+1),a.again()};return o(X,{title:"Approvals",done:r,about:"What turns are waiting for. Nothing runs until someone decides. Opening a link to a request never\
 decides it.",children:[o(J,{...a}),l&&n&&!l.some(u=>u.id===n)&&o("p",{class:"note",children:["The request ",o("code",{children:v(n)})," isn't open. Someone dec\
ided it, it expired, or you can't see it."]}),l?.length===0&&o(ce,{children:"No open requests. When a tool call needs approval or the agent has a question, you'\
ll see it here."}),l?.map(u=>o(kp,{ask:u,me:e,named:u.id===n,done:c},u.id)),e.may.admin&&o(Ri,{decided:s})]})}function bp(e){if(e.kind==="question")return"Answe\
r sent. The agent continues now.";let t=v(e.tool??"the call");return e.answer==="deny"?`You denied ${t}. The agent continues without it.`:`You approved ${t}${e.
answer==="session"?" for this session":""}. It's running now.`}function kp({ask:e,me:t,named:n,done:r}){let s=O(null);P(()=>{n&&(s.current?.scrollIntoView({block:"\
start"}),s.current?.focus({preventScroll:!0}))},[n]);let i="request-"+e.id;return o("article",{ref:s,class:"request"+(n?" named":""),"aria-labelledby":i,tabIndex:-1,
children:[o("h2",{id:i,children:o(dn,{ask:e})}),o("p",{class:"aside",children:["For ",o(E,{of:e.person})," in ",o(V,{of:e.session}),"; asked ",o(T,{at:e.at}),",\
 expires ",o(T,{at:e.expires})," ",t.may.admin&&o(te,{of:e.turn})]}),e.to&&e.to.length>0&&o("p",{class:"aside",children:["Also asked in ",e.to.map(v).join(", "),
"."]}),o(pn,{ask:e,me:t,most:gp,onDone:r})]})}var vp=["turn","refusal","tool","pairing","export","replay","forget","job","approval","schedule","operator","memory","sign_in","judgement"];function Xi({rest:e}){
let[t,n]=b({kind:"",session:e[0]??"",person:""}),[r,s]=b([]),i=r.at(-1),a=L(c=>S(["audit"],{...t,order:"desc",limit:50,after:i},c),JSON.stringify([t,i]));return o(
X,{title:"Audit",about:"What happened, newest first.",children:[o(wp,{filter:t,choose:c=>{n(c),s([])},refresh:a.again}),o(J,{...a}),a.value&&o(_p,{records:a.value.
records}),a.value&&o("div",{class:"after",children:[r.length>0&&o(_,{onPress:()=>s(r.slice(0,-1)),children:"Newer"}),a.value.next!==void 0&&o(_,{onPress:()=>s([
...r,a.value?.next??0]),children:"Older"})]})]})}function wp({filter:e,choose:t,refresh:n}){let[r,s]=b(e.session),[i,a]=b(e.person),l=()=>{let c={...e,session:r.
trim(),person:i.trim()};JSON.stringify(c)===JSON.stringify(e)?n():t(c)};return o("form",{class:"filters",onSubmit:c=>{c.preventDefault(),l()},children:[o("label",
{children:["Kind",o("select",{value:e.kind,onChange:c=>t({...e,kind:c.currentTarget.value}),children:[o("option",{value:"",children:"All"}),vp.map(c=>o("option",
{value:c,children:c.replace("_"," ")},c))]})]}),o("label",{children:["Session",o("input",{value:r,placeholder:"main:telegram:42",onInput:c=>s(c.currentTarget.value)})]}),
o("label",{children:["Person",o("input",{value:i,placeholder:"telegram:42",onInput:c=>a(c.currentTarget.value)})]}),o("button",{class:"button",type:"submit",children:"\
Apply"})]})}function _p({records:e}){return o(Y,{label:"What happened, newest first",rows:e,id:t=>String(t.id),empty:"No matching records. The audit lists what \
agents, people and programs did.",columns:[{title:"When",cell:t=>o(T,{at:t.at})},{title:"Kind",cell:t=>t.kind.replace("_"," ")},{title:"Who",cell:t=>o(E,{of:t.by})},
{title:"Where",cell:t=>t.session?o(V,{of:t.session}):o(E,{of:t.address})},{title:"Result",cell:t=>o(Sp,{of:t})},{title:"Details",cell:t=>o(Cp,{of:t})}]})}var yp=new Set(
["ok","done","answered","admitted","replayed","signed in","read","erased","changed","offered","login","accepted","approved","approved for the session"]),xp=new Set(
["failed","given_up","timeout","permission_denied","denied"]);function Sp({of:e}){let t=yp.has(e.result)?"good":xp.has(e.result)?"bad":void 0;return o(g,{children:[
o(B,{look:t,children:[v(e.result),e.exit_code!==void 0&&` (${e.exit_code})`]})," ",(e.kind==="tool"||e.kind==="turn"||e.kind==="job"||e.kind==="judgement")&&o("\
span",{class:"aside",children:ae(e.elapsed_ms)})]})}function Cp({of:e}){let t=e.used?[Ep(e.used),e.detail].filter(Boolean).join("; "):e.kind==="refusal"?Dp(e):e.
kind==="judgement"?e.verdict:e.detail,n=e.turn??e.messages?.at(-1);return o(g,{children:[e.tool&&o("code",{children:v(e.tool)})," ",t&&o(E,{of:t})," ",n&&o(te,{
of:n}),e.arguments!==void 0&&e.arguments!==null&&o("details",{children:[o("summary",{children:"Arguments"}),o(Zt,{of:e.arguments,label:"Arguments"})]})]})}function Ep(e){
let t=[e.model,R(e.model_calls,"model call"),R(e.calls,"tool call"),$(e.input)+" tokens in",$(e.output)+" out"];return e.microdollars!==void 0&&t.push(ue(e.microdollars)),
t.filter(Boolean).join(", ")}function Dp(e){return R(e.count??e.messages?.length??1,"message")+(e.detail?"; "+e.detail:"")}function zi({me:e}){let t=ne(),n=L(s=>S(["sign-ins"],{},s),""),r=re(s=>({title:s.current?"Sign out here?":"Sign out this browser?",confirm:"Sign out browser",text:o(
g,{children:[En(s.device)," (",o(E,{of:s.caller}),") will need to sign in again. ",s.current&&"That's the browser you're using now."]}),act:async()=>{await ie([
"sign-ins",s.id]),t.say(`You signed out ${En(s.device)} (${v(s.caller)}).`),n.again()}}));return o(X,{title:"Browsers",done:t,about:e.may.admin?"Browsers that a\
re signed in to this page.":"Browsers that are signed in to this page with your token.",children:[o(ee,{read:n,rows:s=>s.sign_ins,label:"Signed-in browsers, mos\
t recently used first",id:s=>s.id,empty:"No browsers are signed in.",columns:[{title:"Browser",cell:s=>o(g,{children:[o("span",{title:v(s.device),children:En(s.
device)})," ",s.current&&o(B,{look:"good",children:"this browser"})]})},{title:"Who",cell:s=>o(E,{of:s.caller})},{title:"Signed in",cell:s=>o(T,{at:s.began})},{
title:"Last used",cell:s=>o(T,{at:s.seen})},{title:"Actions",cell:s=>o(_,{look:"danger",onPress:()=>r.ask(s),label:`Sign out ${En(s.device)} (${s.caller})`,children:"\
Sign out…"})}]}),r.dialog]})}function En(e){let t=s=>s.find(([,i])=>i.test(e))?.[0],n=t([["Edge",/Edg/],["Opera",/OPR/],["Firefox",/Firefox|FxiOS/],["Chrome",
/Chrome|CriOS/],["Safari",/Safari/]]),r=t([["Android",/Android/],["iPhone",/iPhone/],["iPad",/iPad/],["Windows",/Windows/],["macOS",/Mac OS X/],["Linux",/Linux/]]);
return n?r?`${n} on ${r}`:n:v(e)||"Unknown browser"}function Ui(){let[e,t]=b(""),[n,r]=b(!1),s=L(a=>S(["config"],{},a),""),i=a=>(!n||a.from!=="default")&&jt(e,a.key,Ni(a),a.from);return o(X,{title:"Configuration",
about:"The settings in force. To change one, edit the file and send SIGHUP to the server, or restart it.",children:[s.value&&o("p",{class:"aside",children:["Fil\
e: ",o(E,{of:s.value.file||"none"}),o("br",{}),"Home: ",o(E,{of:s.value.home})]}),s.value?.notices?.map(a=>o("p",{class:"note warn",children:v(a)},a)),o(Ht,{label:"\
Find settings",value:e,set:t,children:o("label",{class:"choice",children:[o("input",{type:"checkbox",checked:n,onChange:a=>r(a.currentTarget.checked)})," Hide d\
efaults"]})}),o(ee,{read:s,rows:a=>a.settings.filter(i),label:"Settings in force; secrets are ***",id:a=>a.key,empty:"No matching settings.",columns:[{title:"Se\
tting",cell:a=>o(g,{children:[o("code",{class:"name",children:v(a.key)})," ",a.no_effect&&o(B,{look:"warn",children:"no effect yet"})]})},{title:"Value",cell:a=>o(
"code",{class:"name",children:v(Ni(a))})},{title:"From",cell:a=>a.from==="default"?o("span",{class:"aside",children:"default"}):o(E,{of:a.from})}]})]})}function Ni(e){
return JSON.stringify(e.value)}var Ap=100;function Wi({me:e}){let t=ne(),[n,r]=b(""),[s,i]=b(""),[a,l]=b(null),c=z(f=>S(["dead-letters"],{topic:n,after:s,order:"desc",limit:Ap},f),n+" "+s,30,
["dead_letter"]),u=Tp(e.may.read),d=f=>{r(f),i("")},m=f=>{t.say(f),l(null),c.again()},h=async f=>{let{id:k}=await H(["dead-letters",f.topic,f.id,"replay"]);m(`R\
eplayed as ${k}.`)},p=re(f=>({title:"Forget this message?",confirm:"Forget it",text:o(g,{children:["This deletes the message ",o(E,{of:f.id})," for ",o(E,{of:f.
key}),". You can't undo it."]}),act:async()=>{await ie(["dead-letters",f.topic,f.id]),m(`Forgot the dead letter ${f.id}.`)}}));return o(X,{title:"Dead letters",
done:t,about:"Messages that couldn't be delivered or answered after several tries. Once you've fixed the cause, you can replay them.",children:[o(Fp,{topics:u,chosen:n,
choose:d}),o(J,{...c}),c.value&&o(Pp,{letters:c.value.letters,look:l,replay:h,drop:p.ask,fail:t.fail}),c.value&&o(Mp,{page:c.value,topic:n,after:s,go:i}),a&&o(Bp,
{of:a,close:()=>l(null)},a.topic+" "+a.id),p.dialog]})}function Tp(e){return(L(async n=>e?(await S(["status"],{brief:!0},n)).topics:[],"").value??[]).filter(n=>n.
dead>0)}function Fp({topics:e,chosen:t,choose:n}){return e.length<2&&!t?null:o("div",{class:"filters",children:o("label",{children:["Topic",o("select",{value:t,
onChange:r=>n(r.currentTarget.value),children:[o("option",{value:"",children:"All"}),e.map(r=>o("option",{value:r.topic,children:[r.topic," (",$(r.dead),")"]},r.
topic))]})]})})}function Pp({letters:e,look:t,replay:n,drop:r,fail:s}){return o(Y,{label:"Dead letters, newest first within each topic",rows:e,id:i=>i.topic+" "+
i.id,empty:"No dead letters. Messages that can't be delivered or answered after several tries show up here.",columns:[{title:"Gave up",cell:i=>o(T,{at:i.buried_at})},
{title:"For",cell:i=>o(g,{children:[o(E,{of:i.key}),o("br",{}),o("span",{class:"aside",children:o(E,{of:i.topic})})]})},{title:"Reason",cell:i=>v(i.reason)},{title:"\
Attempts",cell:i=>$(i.attempts),number:!0},{title:"Size",cell:i=>Q(i.bytes),number:!0},{title:"Message",cell:i=>o("div",{class:"rowactions",children:[o(_,{onPress:()=>t(
i),label:`View ${i.id}`,children:"View"}),o(_,{onPress:()=>n(i),onError:s,label:`Replay ${i.id}`,children:"Replay"}),o(_,{look:"danger",onPress:()=>r(i),label:`\
Forget ${i.id}`,children:"Forget…"})]})}]})}function Mp({page:e,topic:t,after:n,go:r}){return e.more&&!t?o("p",{class:"none after",children:"There are more. C\
hoose a topic to see them all."}):o(Ze,{after:n,next:e.next,go:r})}function Bp({of:e,close:t}){let n=L(r=>S(["dead-letters",e.topic,e.id],{},r),e.topic+" "+e.id);
return o(Pe,{title:"Message",close:t,children:[o("p",{class:"aside",children:[o(E,{of:e.id})," ",o(te,{of:e.id})]}),o(J,{...n}),n.value&&o(Zt,{of:n.value.message??
"This message isn't JSON, so the page can't show it.",label:"The message"})]})}var $p=1e3;function Hi(){let e=L(a=>S(["doctor"],{},a),""),t=e.value,[n,r]=b(!1),s=n||(t?.running??!1);P(()=>{if(r(!1),!t?.running)return;let a=setTimeout(e.again,
$p);return()=>clearTimeout(a)},[t,e.error]);let i=()=>{r(!0),e.again()};return o(X,{title:"Doctor",about:"What the server finds when it checks its settings, its\
 data, the model and the platforms, like parley doctor. This takes a few seconds, and sends the model a short request.",children:[o("div",{class:"filters",children:o(
Op,{checkup:t,running:s,again:i})}),o(I,{error:e.error,again:i}),o("p",{class:"aside",children:[o("span",{role:"status",children:s||!t&&!e.error?"Checking…":t&&
Ip(t.findings)})," ",t?.at&&o(g,{children:["Checked ",o(T,{at:t.at}),", in ",ae(t.took_ms),"."]})]}),t?.at&&o(Rp,{of:t.findings})]})}function Op({checkup:e,running:t,
again:n}){let[,r]=b(0),s=e?.again?Math.max(0,new Date(e.again).getTime()-Date.now()):0;return P(()=>{if(s===0)return;let i=setTimeout(()=>r(a=>a+1),Math.min(s,1e3));
return()=>clearTimeout(i)}),o(g,{children:[o(_,{look:"main",disabled:!e||t||s>0,onPress:n,children:"Check again"}),s>0&&!t&&o("span",{class:"aside",children:["i\
n ",ae(Math.ceil(s/1e3)*1e3)]})]})}function Ip(e){let t=e.filter(n=>n.state==="wrong").length;return t>0?R(t,"thing")+(t===1?" needs":" need")+" a change.":"Eve\
rything works."}var Lp={wrong:"bad",note:"warn",ok:"good"},qi=["wrong","note","ok"];function Rp({of:e}){let t=e.map((n,r)=>({...n,n:r})).sort((n,r)=>qi.indexOf(
n.state)-qi.indexOf(r.state)||n.n-r.n);return o(Y,{label:"What was checked, problems first",rows:t,id:n=>String(n.n),empty:"Nothing was checked.",columns:[{title:"\
Part",cell:n=>o("strong",{class:"name part",children:v(n.part)})},{title:"State",cell:n=>o(B,{look:Lp[n.state],children:n.state})},{title:"Finding",cell:n=>o("s\
pan",{class:"name",children:v(n.detail)})},{title:"What to do",cell:n=>n.remedy&&o("span",{class:"name",children:v(n.remedy)})}]})}var Jp=100,Xp={ok:"good",failed:"bad",unknown:"bad"};function ji({me:e,rest:t}){let n=ne(),[r,s]=b(t[0]??""),[i,a]=b(null),l=z(u=>S(["jobs"],{session:r,limit:Jp},
u),r,15,["job"]),c=re(u=>({title:"Stop this job?",confirm:"Stop job",text:o(mn,{of:u,session:u.session}),act:async()=>{await ie(["jobs",u.id]),n.say(`Asked ${u.
id} to stop.`),l.again()}}));return o(X,{title:"Jobs",done:n,about:"Commands that agents run in the background, and those that ended in the last 30 days.",children:[
o(zp,{session:r,choose:s}),o(J,{...l}),l.value&&o(Np,{jobs:l.value.jobs,look:a,stop:e.may.admin?c.ask:void 0}),l.value?.more&&o("p",{class:"none after",children:"\
There are more. Choose a session to see its jobs."}),i&&o(Wp,{of:i,close:()=>a(null)},i.id),c.dialog]})}function zp({session:e,choose:t}){let[n,r]=b(e);return o(
"form",{class:"filters",onSubmit:s=>{s.preventDefault(),t(n.trim())},children:[o("label",{class:"long",children:["Session",o("input",{value:n,placeholder:"main:\
telegram:42",spellcheck:!1,onInput:s=>r(s.currentTarget.value)})]}),o("button",{class:"button",type:"submit",children:"Apply"})]})}function Np({jobs:e,look:t,stop:n}){
return o(Y,{label:"Jobs: running ones first, then newest first",rows:e,id:r=>r.id,empty:"No jobs. A command that an agent runs in the background shows up here.",
columns:[{title:"State",cell:r=>o(Up,{of:r})},{title:"Command",cell:r=>o("code",{class:"name",children:v(r.command)})},{title:"For",cell:r=>o(g,{children:[o(E,{
of:r.person}),o("br",{}),o(V,{of:r.session})]})},{title:"Started",cell:r=>o(T,{at:r.started})},{title:"Printed",cell:r=>Q(r.printed),number:!0},{title:"Actions",
cell:r=>o("div",{class:"rowactions",children:[o(_,{onPress:()=>t(r),label:`Output of ${r.id}`,children:"Output"}),n&&r.state==="running"&&!r.stopping&&o(_,{look:"\
danger",onPress:()=>n(r),label:`Stop ${r.id}`,children:"Stop…"})]})}]})}function Up({of:e}){let[t,n]=fn(e);return o(g,{children:[o(B,{look:Xp[t],children:n}),
o("br",{}),e.state==="running"&&o("span",{class:"aside",children:["for ",o(pe,{at:e.started}),"; times out ",o(T,{at:e.deadline})]}),e.ended&&o("span",{class:"a\
side",children:o(T,{at:e.ended})}),e.detail&&o("span",{class:"aside",children:[o("br",{}),v(e.detail)]})]})}function Wp({of:e,close:t}){let n=z(s=>S(["jobs",e.id],
{},s),e.id,5,["job","job_output"]),r=n.value?.output??"";return o(Pe,{title:"Output",close:t,children:[o("p",{class:"aside",children:o("code",{class:"name",children:v(
e.command)})}),o(J,{...n}),n.value&&!r&&o("p",{class:"none",children:["It printed nothing",n.value.state==="running"&&" yet","."]}),n.value&&r&&o(Me,{of:r,label:`\
Output of ${e.id}`,above:`Printed ${Q(n.value.printed)}; this is the end`})]})}function Vi(e,t){let n=e===void 0?[]:e.split(`
`),r=t.split(`
`),s=0;for(;s<n.length&&s<r.length&&n[s]===r[s];)s++;let i=0;for(;i<n.length-s&&i<r.length-s&&n.at(-1-i)===r.at(-1-i);)i++;let a=l=>({mark:" ",text:l});return[...r.
slice(0,s).map(a),...qp(n.slice(s,n.length-i),r.slice(s,r.length-i)),...r.slice(r.length-i).map(a)]}function qp(e,t){let n=l=>({mark:"-",text:l}),r=l=>({mark:"+",
text:l});if(e.length===0||t.length===0||e.length*t.length>4e6)return[...e.map(n),...t.map(r)];let s=Array.from({length:e.length+1},()=>new Uint32Array(t.length+
1)),i=(l,c)=>s[l]?.[c]??0;for(let l=e.length-1;l>=0;l--){let c=s[l];if(c)for(let u=t.length-1;u>=0;u--)c[u]=e[l]===t[u]?i(l+1,u+1)+1:Math.max(i(l+1,u),i(l,u+1))}
let a=[];for(let l=0,c=0;l<e.length||c<t.length;){let[u,d]=[e[l],t[c]];u!==void 0&&u===d?(a.push({mark:" ",text:u}),l++,c++):u!==void 0&&(d===void 0||i(l+1,c)>=
i(l,c+1))?(a.push(n(u)),l++):d!==void 0&&(a.push(r(d)),c++)}return a}function Or(e,t){return H(["mcp",e,"accept"],{tool:t.name,digest:t.digest})}function Zi({server:e,tool:t,changed:n,renew:r,outcome:s,done:i}){let a=v(t.name),l=async()=>{
await Or(e,t),s.say(`Accepted ${a}.`),i()};return o("section",{class:"request","aria-label":`${t.was?"Changed":"New"} tool ${a} of ${e}`,children:[o("div",{class:"\
between",children:[o("strong",{children:o("code",{children:a})}),o(B,{look:"warn",children:t.was?"changed":"new"})]}),o(Ue,{title:"Description",of:`${a} of ${e}`,
before:t.was?.description,now:t.description,isNew:!t.was}),o(Ue,{title:"Arguments",of:`${a} of ${e}`,before:t.was&&Tt(t.was),now:Tt(t),isNew:!t.was}),n?o("p",{class:"\
note warn",children:["The tool changed again while you were looking. ",o(_,{onPress:r,label:`Show ${a} again`,children:"Show it again"})]}):o(_,{look:"main",onPress:l,
onError:s.fail,label:`Accept ${a}`,children:"Accept"})]})}function Tt(e){return JSON.stringify(e.schema,null,2)}function Ue({title:e,of:t,before:n,now:r,isNew:s}){
let i={" ":"","+":"plus","-":"minus"},a=Vi(n===void 0?void 0:v(n),v(r)),l=a.some(c=>c.mark!==" ");return o("div",{class:"preview",children:[o("h3",{children:[e,
!s&&!l&&" (unchanged)"]}),o("pre",{tabIndex:0,role:"region","aria-label":`${e}: ${t}`,children:a.map((c,u)=>o("span",{class:"preview-line "+(s?"":i[c.mark]),children:(s?
"":c.mark+" ")+c.text+`
`},u))})]})}function Dn({server:e,tools:t}){return o("ul",{class:"items",children:t.map(n=>o("li",{children:o("details",{children:[o("summary",{children:o("code",
{children:o(E,{of:n.name})})}),o(Ue,{title:"Description",of:`${v(n.name)} of ${e}`,now:n.description,isNew:!0}),o(Ue,{title:"Arguments",of:`${v(n.name)} of ${e}`,
now:Tt(n),isNew:!0})]})},n.name))})}var Hp=2e3;function Ki({server:e,done:t}){let[n,r]=b(null),[s,i]=b(null),a=async()=>{i(null),r(await H(["mcp",e,"login"]))},l=()=>{r(null),t()};return P(()=>{if(!n)
return;let c=new AbortController,u=async()=>{if(!document.hidden)try{(await S(["mcp",e,"login"],{id:n.id},c.signal)).done?l():Date.now()>Date.parse(n.until)&&(r(
null),i(new Error("The link has expired. Sign in again.")))}catch(m){c.signal.aborted||i(m)}},d=setInterval(()=>{u()},Hp);return()=>{c.abort(),clearInterval(d)}},
[n]),o(g,{children:[o(I,{error:s}),n?o(jp,{begun:n,server:e,done:l}):o(_,{onPress:a,onError:i,label:`Sign in to ${e}`,children:"Sign in…"})]})}function jp({begun:e,
server:t,done:n}){let[r,s]=b(""),[i,a]=b(null),l=ge(),c=async()=>{await H(["mcp",t,"login"],{address:r.trim()}),n()},u=/^https?:\/\//i.test(e.url);return o("div",
{class:"note",children:o("div",{ref:l,tabIndex:-1,class:"opened",children:[o("p",{children:[u?o("a",{href:e.url,target:"_blank",rel:"noopener noreferrer",children:"\
Open the sign-in page"}):v(e.url)," The link expires ",o(T,{at:e.until}),"."]}),o("p",{children:["Your browser ends up at ",o("code",{children:v(e.ends)}),". If\
 it can't open that page, paste its address here."]}),o(I,{error:i}),o("form",{class:"filters",onSubmit:d=>{d.preventDefault(),r.trim()&&c().catch(a)},children:[
o("label",{class:"long",children:["Address of the last page",o("input",{value:r,autocomplete:"off",spellcheck:!1,onInput:d=>s(d.currentTarget.value)})]}),o(_,{disabled:!r.
trim(),onPress:c,onError:a,children:"Finish"})]})]})})}var Vp={up:"up",down:"down",sign_in:"sign-in needed",untried:"not tried here"},Zp={up:"good",down:"bad",sign_in:"warn",untried:void 0};function Gi(){let e=ne(),
t=z(r=>S(["mcp"],{},r),"",15),n=t.value?.servers;return o(X,{title:"MCP servers",done:e,about:"Programs and services whose tools agents use. Agents can't use a \
new or changed tool until you accept it.",children:[o(J,{...t}),n?.length===0&&o(ce,{children:"No MCP servers are configured. See docs/tools.md to add one."}),n?.
map(r=>o(Kp,{of:r,outcome:e,again:t.again},r.name))]})}function Kp({of:e,outcome:t,again:n}){let[r,s]=b(null),i="server-"+e.name,a=async()=>{let c=await H(["mcp",
e.name,"test"]);s(c),c.up?t.say(`${e.name} lists ${R(c.listed,"tool")}, after ${ae(c.ms)}.`):t.fail(new Error(`${e.name} can't be reached: ${v(c.error??"")}`)),
n()},l=()=>{t.say(`Signed in to ${e.name}.`),n()};return o("article",{class:"story","aria-labelledby":i,children:[o("h2",{id:i,children:[o(E,{of:e.name})," ",o(
B,{look:Zp[e.state],children:Vp[e.state]})]}),o("p",{class:"aside",children:[e.agents.length>0?`Used by ${e.agents.join(", ")}`:"No agent uses it",e.state==="un\
tried"&&". This process hasn't tried to reach it; in a fleet, workers do"]}),e.error&&o("p",{class:"trouble",children:v(e.error)}),o("div",{class:"rowactions",children:[
o(_,{onPress:a,onError:t.fail,label:`Test ${e.name}`,children:"Test"}),e.sign_in&&e.state!=="up"&&o(Ki,{server:e.name,done:l},e.state)]}),r&&r.unusable.length>0&&
o("ul",{class:"hints",children:r.unusable.map(c=>o("li",{children:[R(c.tools,"tool")," can't be used: ",c.reason," ",c.names&&o(E,{of:`(${c.names.join(", ")})`})]},
c.reason))}),o(Gp,{server:e,outcome:t,again:n}),e.tools.length>0&&o("details",{children:[o("summary",{children:[R(e.tools.length,"tool")," in use"]}),o(Dn,{server:e.
name,tools:e.tools})]})]})}function Gp({server:e,outcome:t,again:n}){let[,r]=b(0),s=O(new Map),i=new Map(e.aside.map(c=>[c.name,s.current.get(c.name)??c]));s.current=
i;let a=c=>{i.set(c.name,c),r(u=>u+1)},l=re(c=>({title:`Accept ${R(c.length,"tool")}?`,confirm:"Accept all",text:o(g,{children:["Agents read what these tools sa\
y about themselves as if you had said it: ",o(E,{of:c.map(u=>u.name).join(", ")}),". Accept them only if you've read it."]}),act:async()=>{try{for(let u of c)await Or(
e.name,u);t.say(`Accepted ${R(c.length,"tool")} of ${e.name}.`)}finally{n()}}}));return e.aside.length===0?null:o(g,{children:[o("div",{class:"between",children:[
o("h3",{children:[R(e.aside.length,"tool")," to accept"]}),e.aside.length>1&&o(_,{onPress:()=>l.ask([...i.values()]),label:`Accept all of ${e.name}`,children:"A\
ccept all…"})]}),e.aside.map(c=>o(Zi,{server:e.name,tool:i.get(c.name)??c,changed:i.get(c.name)?.digest!==c.digest,renew:()=>a(c),outcome:t,done:n},c.name)),l.
dialog]})}var Ft={session:"Conversation",person:"Person",agent:"Agent"},Yp={session:"main:telegram:42",person:"telegram:42",agent:"main"},Yi=["turn_complete","turn_error"];
function Qi({rest:e}){let t=ne(),[n,r]=b(""),[s="",i=""]=e,a=z(l=>S(["memory"],{after:n,limit:100},l),n,30,[...Yi]);return o(X,{title:"Memory",done:t,about:"Wha\
t agents remember for all conversations, and about people. Agents read this with every message it applies to.",children:[o(Qp,{scope:s,owner:i},s+" "+i),i&&o(ef,
{scope:s,owner:i,outcome:t,changed:a.again},s+" "+i),o(U,{title:"All memories",wide:!0,children:[o(ee,{read:a,rows:l=>l.memories,label:"Memories of agents and a\
bout people",id:l=>l.scope+" "+l.owner,empty:"Agents remember nothing about people, and nothing for all conversations.",columns:[{title:"Whose",cell:l=>o(g,{children:[
o("strong",{children:o(E,{of:l.owner})}),o("br",{}),o("span",{class:"aside",children:ea(l.scope).toLowerCase()})]})},{title:"Size",cell:l=>Q(l.bytes),number:!0},
{title:"From strangers",cell:l=>l.untrusted?o(B,{look:"warn",children:"maybe"}):"no"},{title:"Changed",cell:l=>o(T,{at:l.changed})},{title:"Actions",cell:l=>o("\
a",{href:W("memory",l.scope,l.owner),"aria-label":`View the memory of ${l.owner}`,children:"View"})}]}),o(Ze,{after:n,next:a.value?.next,go:r})]})]})}function ea(e){
return e in Ft?Ft[e]:e}function Qp({scope:e,owner:t}){let[n,r]=b(e in Ft?e:"session"),[s,i]=b(t),a=()=>Te("memory",n,s.trim());return o("form",{class:"filters",
onSubmit:l=>{l.preventDefault(),s.trim()&&a()},children:[o("label",{children:["Memory of",o("select",{value:n,onChange:l=>r(l.currentTarget.value),children:Object.
entries(Ft).map(([l,c])=>o("option",{value:l,children:c},l))})]}),o("label",{class:"long",children:[Ft[n],o("input",{value:s,placeholder:Yp[n],spellcheck:!1,onInput:l=>i(
l.currentTarget.value)})]}),o(_,{look:"main",disabled:!s.trim(),onPress:a,children:"Show"})]})}function ef({scope:e,owner:t,outcome:n,changed:r}){let s=z(m=>S([
"memory",e,t],{},m),e+" "+t,30,[...Yi]),[i,a]=b(null),l=()=>{s.again(),r()},c=m=>{n.say(m),a(null),l()},u=re(m=>({title:"Erase this memory?",confirm:"Erase it",
text:o(g,{children:["This erases everything in the memory of ",o(E,{of:t}),". You can't undo it."]}),act:async()=>{await ie(["memory",e,t],m.version).catch(h=>ta(
h,l)),c(`Erased the memory of ${v(t)}.`)}})),d=s.value;return o(U,{title:`Memory of ${v(t)}`,wide:!0,children:[o(J,{...s}),d&&o(g,{children:[o("p",{class:"aside",
children:[e==="session"?o(g,{children:["Conversation ",o(V,{of:t})]}):ea(e),d.content!==""&&o(g,{children:[", ",Q(Ir(d.content))," of ",Q(d.most_bytes)]})," ",d.
untrusted&&o(B,{look:"warn",children:"strangers may have written some of this"})]}),d.redacted&&o("p",{class:"note",children:"Secrets are hidden here. If you sa\
ve your edit, they're removed from the memory, too."}),d.content===""?o("p",{class:"none",children:"There's no memory here."}):o(Me,{of:d.content,label:"The mem\
ory"}),i?o(tf,{base:i,now:d,again:l,close:()=>a(null),saved:()=>c(`Saved the memory of ${v(t)}.`)}):o("div",{class:"after",children:[o(_,{onPress:()=>a(d),children:d.
content===""?"Write":"Edit"}),d.content!==""&&o(_,{look:"danger",onPress:()=>u.ask(d),children:"Erase…"})]})]}),u.dialog]})}function ta(e,t){throw e instanceof
se&&e.status===412&&t(),e}function Ir(e){return new TextEncoder().encode(e).length}function tf({base:e,now:t,again:n,saved:r,close:s}){let[i,a]=b(e.content),[l,
c]=b(e.version),[u,d]=b(null),m=ge(),h=t.version!==l,p=Ir(i)>e.most_bytes,f=async()=>{d(null),await wo(["memory",e.scope,e.owner],{content:i},l).catch(k=>ta(k,n)),
r()};return o("form",{class:"editor",onSubmit:k=>{k.preventDefault(),f().catch(d)},children:[o("label",{class:"long",children:["New text",o("textarea",{ref:m,rows:12,
value:i,onInput:k=>a(k.currentTarget.value)})]}),h&&o("div",{class:"note error",role:"alert",children:[o("span",{children:"This memory changed while you were ed\
iting it. Its current text is above. Copy what you need from it."}),o(_,{onPress:()=>{c(t.version),d(null)},children:"Replace it with my text"})]}),p&&o("p",{class:"\
note error",role:"alert",children:["That's too long: ",Q(Ir(i))," of ",Q(e.most_bytes),"."]}),!h&&o(I,{error:u}),o("div",{class:"after",children:[o(_,{look:"mai\
n",disabled:h||p||!i.trim()||i===t.content,onPress:f,onError:d,children:"Save"}),o(_,{onPress:s,children:"Cancel"})]})]})}var nf={waiting:"waiting to be accepted",accepted:"accepted",revoked:"removed"},rf={waiting:"warn",accepted:"good",revoked:void 0};function na(){let e=ne(),[t,n]=b(
null),r=z(l=>S(["nodes"],{},l),"",10),s=r.value?.nodes,i=async()=>n(await H(["nodes","invite"])),a=re(l=>({title:`Remove ${l.name}?`,confirm:"Remove node",text:o(
g,{children:["Its connection ends at once, and agents can't use it anymore. To be used again, ",o(E,{of:l.name})," has to join again."]}),act:async()=>{await H(
["nodes",l.name,"revoke"]),e.say(`Removed ${l.name}.`),r.again()}}));return o(X,{title:"Nodes",done:e,about:"Devices that run calls for agents. Agents can't use\
 a device, or a new or changed tool of one, until you accept it.",children:[o("div",{class:"filters",children:o(_,{onPress:i,onError:e.fail,children:"Invite a d\
evice"})}),t&&o(of,{by:t,close:()=>n(null)},t.code),o(J,{...r}),s?.length===0&&o(ce,{children:"No device has joined. See docs/nodes.md."}),s?.map(l=>o(sf,{of:l,
outcome:e,again:r.again,remove:()=>a.ask(l)},l.name)),a.dialog]})}function of({by:e,close:t}){let n=e.url||(location.protocol==="https:"?location.origin:""),r=`\
parley node join ${n||"https://…"} ${e.code}`;return o(Pe,{title:"Run this on the device",close:t,children:[o(Me,{of:r,label:"The command to run on the device"}),
e.broker&&o(g,{children:[o("p",{children:"Or this, if it reaches only the MQTT broker:"}),o(Me,{of:`parley node join ${e.broker} ${e.broker_code}`,label:"The co\
mmand to run on a device that reaches only the broker"})]}),o("p",{children:["The code works once, until ",o(Ve,{at:e.until})," (",o(T,{at:e.until}),"). Then st\
art ",o("code",{children:"parley node"})," there, and accept the device here."]}),!n&&o("p",{children:["Replace https://… with the address at which the device r\
eaches this server. With ",o("code",{children:"[http] public_url"}),", it's shown here."]})]})}function sf({of:e,outcome:t,again:n,remove:r}){let s="node-"+e.name,
i=e.state!=="revoked";return o("article",{class:"story","aria-labelledby":s,children:[o("h2",{id:s,children:[o(E,{of:e.name})," ",o(B,{look:rf[e.state],children:nf[e.
state]})," ",i&&o(B,{look:e.here?"good":"bad",children:e.here?"here":"away"})]}),i&&o("p",{class:"aside",children:o(af,{of:e})}),e.platform&&o("p",{class:"aside",
children:["Platform: ",o(E,{of:e.platform})]}),i&&o("p",{class:"aside",children:[e.agents.length>0?`Used by ${e.agents.join(", ")}`:"No agent may use it",". ",e.
trusted?"What it returns is trusted.":"What it returns isn't trusted."]}),o("p",{class:"aside",children:e.fingerprint?o(g,{children:["Fingerprint of its key: ",
o("code",{children:e.fingerprint})]}):"It has no key."}),i&&o("div",{class:"rowactions",children:o(_,{look:"danger",onPress:r,label:`Remove ${e.name}`,children:"\
Remove…"})}),i&&o(lf,{by:e,outcome:t,again:n}),e.tools.length>0&&o("details",{children:[o("summary",{children:[R(e.tools.length,"tool")," in use"]}),o(Dn,{server:e.
name,tools:e.tools})]})]})}function af({of:e}){return e.since?e.here?o(g,{children:["Connected for ",o(pe,{at:e.since})]}):o(g,{children:["Away for ",o(pe,{at:e.
since}),", since ",o(T,{at:e.since})]}):o(g,{children:["It hasn't connected yet. Start ",o("code",{children:"parley node"})," on the device."]})}function lf({by:e,
outcome:t,again:n}){let[,r]=b(0),s=O(null);e.aside.length>0||e.state==="waiting"&&e.since!==void 0?s.current??=e:s.current=null;let a=s.current;if(!a)return null;
let l=e.state==="waiting"?"Accept this node":"Accept these tools",c=async()=>{try{await H(["nodes",e.name,"accept"],{digest:a.digest}),t.say(`Accepted ${e.name}\
.`)}finally{n()}},u=()=>{s.current=e,r(d=>d+1)};return o(g,{children:[o("div",{class:"between",children:o("h3",{children:a.aside.length>0?`${R(a.aside.length,"t\
ool")} to accept`:"It offers no tools"})}),a.aside.map(d=>o(cf,{node:e.name,tool:d},d.name)),a.digest!==e.digest?o("p",{class:"note warn",children:["What it off\
ers changed while you were looking. ",o(_,{onPress:u,label:`Show it again: ${e.name}`,children:"Show it again"})]}):o(_,{look:"main",onPress:c,onError:t.fail,label:`${l}\
: ${e.name}`,children:l})]})}function cf({node:e,tool:t}){let n=v(t.name);return o("section",{class:"request","aria-label":`Tool ${n} of ${e}`,children:[o("div",
{class:"between",children:[o("strong",{children:o("code",{children:n})}),t.pure&&o("span",{class:"aside",children:"It says that it changes nothing"})]}),o(Ue,{title:"\
Description",of:`${n} of ${e}`,now:t.description,isNew:!0}),o(Ue,{title:"Arguments",of:`${n} of ${e}`,now:Tt(t),isNew:!0})]})}function ra({tell:e}){let n=z(r=>S(["asks"],{},r),"",60,["ask","ask_resolved"]).value?.asks.length??0;return P(()=>e(n),[n]),n===0?null:o("span",{class:"badge w\
arn",children:[n,o("span",{class:"away",children:" open"})]})}function An({caps:e}){return e.length===0?o("p",{class:"none",children:"No cap is in effect, because no model has a known price. See docs/models.md to set price\
s."}):o("ul",{class:"caps",children:e.map(t=>o("li",{children:o(uf,{cap:t})},t.of+t.span))})}function uf({cap:e}){let{most_microdollars:t,spent_microdollars:n,reserved_microdollars:r}=e,
s=Math.max(0,t-n-r),i=l=>t>0?100*l/t:100,a=i(n+r);return o(g,{children:[o("span",{class:"between",children:[o("span",{title:e.setting,children:[e.of==="all"?"Ev\
eryone":o(E,{of:e.of}),", ",e.span==="day"?"today":"this month"]}),o("span",{children:[dt(n)," of ",dt(t)]})]}),o(Ke,{spent:i(n),kept:i(r),look:a>=100?"over":a>=
80?"near":""}),o("span",{class:"aside",children:[s>0?`${dt(s)} left`:"nothing left",r>0&&`, ${dt(r)} reserved`]})]})}var rt=720,We=120;function Pt({title:e,times:t,series:n,says:r,lines:s,summary:i}){return o("figure",{class:"chart",children:[o("figcaption",{children:[o("h3",{
children:e}),o("ul",{class:"legend",children:n.map(a=>o("li",{children:[o("svg",{class:"key "+a.look+(s?" line":""),viewBox:"0 0 14 10","aria-hidden":"true",focusable:"\
false",children:s?o("path",{d:"M0 5H14"}):o("rect",{width:"14",height:"10"})}),a.name]},a.name))})]}),o(Lr,{label:`${e}. ${i}`,times:t,series:n,says:r,tells:a=>pf(
n,a,r),lines:s}),o(hf,{title:e,times:t,series:n,says:r})]})}function Lr({label:e,times:t,series:n,says:r,tells:s,lines:i}){let a=Math.max(...i?n.flatMap(c=>c.values.
map(u=>u??0)):t.map((c,u)=>df(n,u))),l=i?o(mf,{times:t,series:n,most:a}):o(ff,{times:t,series:n,most:a});return o(g,{children:[o("span",{class:"aside",children:r(
a)}),o("svg",{class:"drawing",viewBox:`0 0 ${rt} ${We}`,preserveAspectRatio:"none",role:"img","aria-label":e,children:[o("rect",{class:"rule",width:rt,y:We-1,height:"\
1"}),l,t.map((c,u)=>o("rect",{class:"over",x:u*rt/t.length,width:rt/t.length,height:We,children:o("title",{children:[c,": ",s(u)]})},u))]}),o("span",{class:"bet\
ween aside",children:[o("span",{children:t[0]}),o("span",{children:t.length>1&&t.at(-1)})]})]})}function df(e,t){return e.reduce((n,r)=>n+(r.values[t]??0),0)}function pf(e,t,n){
let r=e.flatMap(s=>s.values[t]?[`${s.name} ${n(s.values[t])}`]:[]);return r.length>0?r.join(", "):"nothing"}function ff({times:e,series:t,most:n}){let r=rt/e.length;
return o(g,{children:e.map((s,i)=>{let a=0;return t.map(l=>{let c=l.values[i]??0;if(c===0)return null;let u=Math.max(2,We*c/n);return a+=u,o("rect",{class:l.look,
x:i*r+r*.12,width:r*.76,y:Math.max(0,We-a),height:u},i+l.name)})})})}function mf({times:e,series:t,most:n}){let r=rt/e.length,s=i=>i.map((a,l)=>{if(a===null)return"";
let c=(l+.5)*r,u=We-2-(We-4)*a/n,d=i[l-1];return d==null&&(i[l+1]??null)===null?`M${c-r*.3} ${u}H${c+r*.3}`:`${d==null?"M":"L"}${c} ${u}`}).join("");return o(g,
{children:t.map(i=>o("path",{class:"line "+i.look,d:s(i.values)},i.name))})}function hf({title:e,times:t,series:n,says:r}){let s=t.map((a,l)=>({time:a,at:l})).filter(
({at:a})=>n.some(l=>l.values[a])),i=[{title:"Time",cell:a=>a.time},...n.map(a=>({title:a.name,cell:l=>a.values[l.at]?r(a.values[l.at]??0):"–",number:!0}))];return o(
"details",{children:[o("summary",{children:["Numbers",o("span",{class:"away",children:[" of ",e]})]}),o(Y,{label:e,columns:i,rows:s,id:a=>String(a.at),empty:"No\
thing was counted."})]})}var Jr=36e5,ot=24*Jr,Tn={day:{title:"the last 24 hours",by:"hour",back:23*Jr,step:Jr},month:{title:"the last 30 days",by:"day",back:29*ot,step:ot},quarter:{title:"\
the last 90 days",by:"day",back:89*ot,step:ot}},gf={hour:2e3,day:2e4};function ia(){let[e,t]=b("day"),{by:n,back:r}=Tn[e],s=()=>new Date(Date.now()-r).toISOString(),
i=z(a=>S(["activity"],{by:n,since:s()},a),e,60,["turn_complete","turn_error"],gf[n]);return o(U,{title:"Over time",wide:!0,children:[o("div",{class:"filters",children:[
o("label",{children:["Show",o("select",{value:e,onChange:a=>t(a.currentTarget.value),children:Object.keys(Tn).map(a=>o("option",{value:a,children:Tn[a].title},a))})]}),
n==="day"&&o("span",{class:"aside",children:"Days are in UTC."})]}),o(J,{...i}),o("div",{class:"charts",children:[i.value&&o(kf,{of:i.value,span:e}),o(yf,{})]}),
i.value&&i.value.total.calls>0&&o(wf,{tools:i.value.total.tools,more:i.value.total.more_tools})]})}function bf(e,t){return t===ot?Se(e):new Date(e).toLocaleString(
"en-US",{weekday:"short",hour:"2-digit",minute:"2-digit",hourCycle:"h23"})}function kf({of:e,span:t}){let{title:n,step:r}=Tn[t],{turns:s}=e.total,i=s.failed+s.given_up;
if(i+s.done+s.stopped+s.refused===0&&e.total.calls===0)return o("p",{class:"none",children:["No turn has ended in ",n,". When the agent answers, you'll see here\
 how many answers there are, how long they take, and how its tools do."]});let l=new Map(e.sums.map(h=>[Date.parse(h.at),h])),c=Wn(Date.parse(e.since),Date.now(),
r),u=c.map(h=>bf(h,r)),d=h=>c.map(p=>{let f=l.get(p);return f?h(f):null}),m=[{name:"Answered",look:"c-main",values:d(h=>h.turns.done)},{name:"Failed",look:"c-ba\
d",values:d(h=>h.turns.failed)},{name:"Given up",look:"c-warn",values:d(h=>h.turns.given_up)},{name:"Stopped",look:"c-faint",values:d(h=>h.turns.stopped)},{name:"\
Refused by a limit",look:"c-good",values:d(h=>h.turns.refused)}];return o(g,{children:[o(Pt,{title:"Answers and errors",times:u,series:m,says:$,summary:`In ${n}\
: ${R(s.done,"answer")}, ${$(i)} failed or given up, ${$(s.stopped)} stopped, ${$(s.refused)} refused.`}),o(oa,{title:"Until the first text",of:e,times:u,each:d,
pick:h=>h.first_token}),o(oa,{title:"Until the answer is complete",of:e,times:u,each:d,pick:h=>h.answer}),e.total.calls>0&&o(Pt,{title:"Tool calls",times:u,says:$,
summary:`In ${n}: ${R(e.total.calls,"call")}, of which ${$(e.total.failed_calls)} didn't succeed.`,series:[{name:"Succeeded",look:"c-main",values:d(h=>h.calls-h.
failed_calls)},{name:"Didn't succeed",look:"c-bad",values:d(h=>h.failed_calls)}]})]})}function oa({title:e,of:t,times:n,each:r,pick:s}){let i=s(t.total);if(i.count===
0)return o("figure",{class:"chart",children:[o("figcaption",{children:o("h3",{children:e})}),o("p",{class:"none",children:"No answers yet."})]});let a=c=>r(u=>s(
u).count>0?s(u)[c]:null),l=[{name:"Half of them (p50)",look:"c-main",values:a("p50_ms")},{name:"95 in 100 (p95)",look:"c-warn dashed",values:a("p95_ms")}];return o(
Pt,{title:e,times:n,series:l,says:ae,lines:!0,summary:`Half of ${R(i.count,"answer")} took up to ${ae(i.p50_ms)}, and 95 in 100 up to ${ae(i.p95_ms)}.`})}var vf={
failed:"failed",denied:"denied",timeout:"timed out",cancelled:"canceled",unknown:"outcome unknown"};function wf({tools:e,more:t}){return o(g,{children:[o("h3",{
children:"Tools"}),o(Y,{label:"Tool calls and how they ended",columns:[{title:"Tool",cell:r=>o(E,{of:r.tool})},{title:"Calls",cell:r=>$(r.calls),number:!0},{title:"\
Success",cell:r=>o(_f,{of:r})},{title:"Other outcomes",cell:r=>Object.entries(r.outcomes).filter(([s,i])=>s!=="ok"&&i>0).map(([s,i])=>`${$(i)} ${vf[s]??s}`).join(
", ")}],rows:e,id:r=>r.tool,empty:"No tools were called."}),t&&o("p",{class:"aside",children:"Other tools were called, too, but less often."})]})}function _f({of:e}){
let t=100*(e.outcomes.ok??0)/e.calls;return o("span",{class:"success",children:[o("span",{children:[t===100?"100":Math.min(99,Math.floor(t)),"%"]}),o(Ke,{spent:t,
look:t>=90?"":t>=50?"near":"over"})]})}var Rr=["c-main","c-good","c-warn","c-bad"],sa=14;function yf(){let e=Se(Date.now()),t=Se(Date.now()-(sa-1)*ot),n=z(a=>S(
["usage"],{by:"day,model",from:t,to:e},a),t,300);if(!n.value)return n.error?o(J,{...n}):null;let r=n.value.usage.filter(a=>a.microdollars>0);if(r.length===0)return null;
let s=Wt(t,e),i=r.reduce((a,l)=>a+l.microdollars,0);return o(Pt,{title:"Cost by day and model",times:s,series:xf(r,s),says:ue,summary:`${ue(i)} in ${sa} days, w\
hich are in UTC.`})}function xf(e,t){let n=new Map;for(let l of e)n.set(l.then??"",(n.get(l.then??"")??0)+l.microdollars);let r=[...n].sort((l,c)=>c[1]-l[1]).map(
([l])=>l),s=l=>t.map(c=>e.reduce((u,d)=>d.key===c&&l(d.then??"")?u+d.microdollars:u,0)||null),i=r.slice(0,Rr.length).map((l,c)=>({name:l||"unknown",look:Rr[c]??
"",values:s(u=>u===l)})),a=r.slice(Rr.length);return a.length>0&&i.push({name:"others",look:"c-faint",values:s(l=>a.includes(l))}),i}async function Sf(e){let t=Se(Date.now()),[n,r,s]=await Promise.all([S(["status"],{},e),Cf(e),S(["usage"],{by:"day",from:t,to:t},e)]);return{status:n,readiness:r,
usage:s}}async function Cf(e){let t=await ct("/readyz",{signal:e});if(!t.ok&&t.status!==503)throw await Je(t);return await t.json()}function aa({me:e}){let t=z(
Sf,"",5,["turn_start","parked","turn_complete","turn_error","ask","ask_resolved","dead_letter","job","channel"]),n=t.value;return o(X,{title:"Overview",children:[
o(J,{...t}),n&&o(g,{children:[o("p",{class:"about",children:["Parley ",n.status.version," (",n.status.role,"), up for ",o(pe,{at:n.status.started})," ",o(Ef,{readiness:n.
readiness})]}),o(Df,{now:n,me:e}),o("div",{class:"blocks",children:[o(Tf,{status:n.status,me:e}),o(Ff,{status:n.status}),o(Pf,{usage:n.usage}),o(Mf,{status:n.status})]}),
o(ia,{})]})]})}function Ef({readiness:e}){let t=Object.entries(e.parts).filter(([,n])=>n!=="ok");return e.ready&&t.length===0?o(B,{look:"good",children:"ready"}):
o(g,{children:[o(B,{look:"bad",children:"not ready"}),t.map(([n,r])=>o("span",{class:"trouble",children:[" ",n,": ",r]},n))]})}function Df({now:e,me:t}){let{status:n,
usage:r}=e,s=n.topics.reduce((c,u)=>c+u.dead,0),i=n.channels.filter(c=>!c.up).length,a=r.usage.reduce((c,u)=>c+u.microdollars,0),l=n.asks?.count??0;return o("ul",
{class:"tiles",children:[o(st,{figure:$(n.turns?.count??0),what:"running"}),o(st,{figure:$(n.waiting?.count??0),what:"waiting"}),o(st,{figure:$(l),what:ut(l,"op\
en request"),look:l?"warn":"",to:t.may.approve?W("approvals"):void 0}),o(st,{figure:$(s),what:ut(s,"dead letter"),look:s?"bad":"",to:t.may.admin?W("dead-letters"):
void 0}),o(st,{figure:i?`${i} of ${n.channels.length}`:$(n.channels.length),what:`${ut(n.channels.length,"channel")} ${i?"down":"up"}`,look:i?"bad":""}),o(st,{figure:ue(
a),what:"today",to:W("usage")})]})}function st({figure:e,what:t,look:n,to:r}){let s=o(g,{children:[o("strong",{class:n,children:e})," ",o("span",{children:t})]});
return o("li",{children:r?o("a",{href:r,children:s}):o("div",{children:s})})}function Af(e){return e.turn?e.calls.length===0?o(g,{children:"calling the model"}):
o(g,{children:["running ",e.calls.map((t,n)=>o("span",{children:[n>0&&", ",o("code",{children:t.tool||"a tool"})," for ",o(pe,{at:t.since})]},t.call))]}):o(g,{children:"\
starting or finishing"})}function Mt({of:e,id:t,item:n,empty:r}){return!e||e.count===0?o("p",{class:"none",children:r}):o(g,{children:[o("ul",{class:"items",children:e.
list.map(s=>o("li",{children:n(s)},t(s)))}),e.count>e.list.length&&o("p",{class:"none",children:["and ",$(e.count-e.list.length)," more"]})]})}function Tf({status:e,
me:t}){return o(g,{children:[o(U,{title:"Running now",children:o(Mt,{of:e.turns,id:n=>n.session,empty:"Nothing is running. You'll see a turn here while the agen\
t works on an answer.",item:n=>o(g,{children:[o(V,{of:n.session}),o("span",{class:"aside",children:[Af(n),"; ",o(pe,{at:n.since})," so far",n.person&&o(g,{children:[
", ",o(E,{of:n.person})]})," ",t.may.admin&&o(te,{of:n.turn})]})]})})}),o(U,{title:"Waiting for a worker",children:o(Mt,{of:e.waiting,id:n=>n.session,empty:"No \
messages are waiting.",item:n=>o(g,{children:[o(V,{of:n.session}),o("span",{class:"aside",children:[R(n.messages,"message"),", the first one ",o(T,{at:n.since}),
n.next&&o(g,{children:["; next try ",o(T,{at:n.next})]})," ",t.may.admin&&o(te,{of:n.session})]})]})})}),o(U,{title:"Waiting for people",children:o(Mt,{of:e.asks,
id:n=>n.id,empty:"No open requests.",item:n=>o(g,{children:[t.may.approve?o("a",{href:W("approvals",n.id),children:n.tool||n.kind}):o("strong",{children:n.tool||
n.kind}),o("span",{class:"aside",children:["for ",o(E,{of:n.person}),", asked ",o(T,{at:n.since}),"; expires ",o(T,{at:n.expires}),"; ",n.decides.join(" or "),"\
 can answer"]})]})})}),o(U,{title:"Jobs",children:o(Mt,{of:e.jobs,id:n=>n.id,empty:"No background commands are running.",item:n=>o(g,{children:[o(V,{of:n.session}),
o("span",{class:"aside",children:[o("code",{children:n.tool})," for ",o(pe,{at:n.since}),"; times out ",o(T,{at:n.deadline})]})]})})})]})}function Ff({status:e}){
let t=e.topics.filter(n=>n.dead>0);return o(U,{title:"Channels",children:[e.channels.length===0&&o("p",{class:"none",children:"No channels are configured. Run p\
arley onboard to add one."}),o("ul",{class:"items",children:e.channels.map(n=>o("li",{children:[o("span",{children:[o("strong",{children:n.name})," ",n.up?o(B,{
look:"good",children:"up"}):o(B,{look:"bad",children:"down"}),n.since&&o("span",{class:"aside",children:[" for ",o(pe,{at:n.since})]})]}),!n.up&&n.reason&&o("sp\
an",{class:"trouble",children:n.reason}),(n.platform||n.bot)&&o("span",{class:"aside",children:[n.platform,n.bot&&o(g,{children:[" as ",o(E,{of:n.bot})]})]}),n.
last_in&&o("span",{class:"aside",children:["last message from people ",o(T,{at:n.last_in})]}),n.last_out&&o("span",{class:"aside",children:["last message sent ",
o(T,{at:n.last_out})]})]},n.name))}),t.length>0&&o(g,{children:[o("h3",{children:"Dead letters"}),o("ul",{class:"items",children:t.map(n=>o("li",{children:o("sp\
an",{children:[o(E,{of:n.topic}),": ",R(n.dead,"dead letter")]})},n.topic))})]})]})}function Pf({usage:e}){let t=e.usage.reduce((r,s)=>r+s.calls,0),n=e.usage.reduce(
(r,s)=>r+s.unpriced,0);return o(U,{title:"Cost",children:[o("p",{class:"none",children:[t===0?"No model calls today (UTC).":`${R(t,"model call")} today (UTC).`,
n>0&&` The price of ${$(n)} is unknown.`]}),o(An,{caps:e.caps})]})}function Mf({status:e}){return o(U,{title:"Due next",children:o(Mt,{of:e.schedules,id:t=>t.id,
empty:"Nothing is scheduled.",item:t=>o(g,{children:[o(T,{at:t.next}),o("span",{class:"aside",children:["for ",o(E,{of:t.person})," in ",o(V,{of:t.session})]})]})})})}var Bf={user:"Everything a person said",session:"A session"};function ca({outcome:e}){let[t,n]=b("user"),[r,s]=b(""),i=re(l=>({title:"Erase this for good?",confirm:"\
Erase it",text:o(g,{children:["This erases ",l.kind==="user"?"everything that was said and remembered by and about":"the session"," ",o(E,{of:l.id}),", with its\
 files. You can't undo it."]}),act:async()=>{let c=await H(["forget"],{[l.kind]:l.id},void 0,{wait:!1});s(""),Te("people",c.id)}})),a=()=>{r.trim()&&i.ask({kind:t,
id:r.trim()})};return o(U,{title:"Erase",wide:!0,children:[o("form",{class:"filters",onSubmit:l=>{l.preventDefault(),a()},children:[o("label",{children:["What t\
o erase",o("select",{value:t,onChange:l=>n(l.currentTarget.value),children:Object.entries(Bf).map(([l,c])=>o("option",{value:l,children:c},l))})]}),o("label",{children:[
t==="user"?"Person":"Session",o("input",{value:r,placeholder:t==="user"?"telegram:42":"main:telegram:42",autocomplete:"off",spellcheck:!1,onInput:l=>s(l.currentTarget.
value)})]}),o(_,{look:"danger",disabled:!r.trim(),onPress:a,onError:e.fail,children:"Erase…"})]}),i.dialog]})}var la=["messages","files","records","log"];function ua({
id:e}){let[t,n]=b(""),r=z(s=>S(["forget",e],{},s).then(i=>(i.state!=="running"&&n(e),i)),e,t===e?600:1);return o(U,{title:"Erasure",wide:!0,children:[o(J,{...r}),
r.value&&o($f,{of:r.value})]})}function $f({of:e}){let{step:t,done:n,of:r}=e.progress,s=(Math.max(0,la.indexOf(t))+(r>0?n/r:0))/la.length;return o(g,{children:[
o("p",{children:[e.state==="running"&&o(B,{look:"warn",children:"erasing"}),e.state==="done"&&o(B,{look:"good",children:"erased"}),e.state==="failed"&&o(B,{look:"\
bad",children:"not everything was erased"})," ",o("span",{class:"aside",children:["asked for ",o(T,{at:e.asked})]})]}),e.state==="running"&&o(g,{children:[o(Ke,
{spent:100*s,look:""}),o("p",{class:"aside",role:"status",children:[t||"beginning",r>1&&`: ${$(n)} of ${R(r,"session")}`,". It goes on if you leave this page."]})]}),
e.state==="failed"&&o("p",{class:"note error",role:"alert",children:[v(e.error??""),". Erase it again to erase the rest."]}),e.receipt&&o(Of,{of:e.receipt})]})}
function Of({of:e}){let n=[["sessions erased entirely",e.log.sessions?.length],["sessions erased in part",e.log.shared?.length],["log entries",e.log.entries],["\
workspaces with their files and memory",e.workspaces?.length],["messages on their way",e.bus.messages],["turns and sends cut off",e.bus.leases],["dead letters",
e.bus.dead_letters],["records of what was sent",e.book.sends],["records of what programs submitted",e.book.posts],["records of chats",e.book.chats],["requests t\
o people",e.book.asks],["ratings of answers",e.book.ratings],["memories about the person, in all conversations",e.book.memories],["files sent to conversations w\
ith others",e.attachments],["files of erased turns in conversations that continue",e.old_files],["records of tool calls in audit files",e.audit_files]].filter(([
,r])=>r);return o(g,{children:[o("h3",{children:["Receipt: ",o(E,{of:e.what})]}),n.length===0&&o("p",{class:"none",children:"There was nothing to erase."}),o("u\
l",{children:n.map(([r,s])=>o("li",{children:[$(s??0)," ",r]},r))}),e.kept&&e.kept.length>0&&o("h3",{children:"Kept"}),o("ul",{children:e.kept?.map(r=>o("li",{children:[
v(r.what),": ",v(r.why)]},r.what))})]})}var If={owner:"owner",admitted:"has access",asks:"wants access"};function da({rest:e}){let t=ne(),n=z(i=>S(["pairings"],{},i),"",10),r=async i=>{let a=await H([
"pairings"],{code:i});t.say(`${Bt(a)} now has access.`),n.again()},s=re(i=>({title:i.state==="asks"?"Refuse access?":"Revoke access?",confirm:i.state==="asks"?"\
Refuse":"Revoke",text:o(g,{children:[Bt(i)," (",o(E,{of:i.person}),") ",i.state==="asks"?"will need to ask for access again.":"can't talk to the agent anymore, \
unless someone gives them access again."]}),act:async()=>{await ie(["pairings",i.person]),t.say(i.state==="asks"?`You refused ${Bt(i)} access.`:`${Bt(i)} no lon\
ger has access.`),n.again()}}));return o(X,{title:"People",done:t,about:"People who got access with a code, people who want it, and people named in the configur\
ation.",children:[e[0]&&o(ua,{id:e[0]}),o(Lf,{admit:r,outcome:t}),o(ee,{read:n,rows:i=>i.pairings,label:"People who have access or want it",id:i=>i.person,empty:'\
Nobody has access or wants it yet. People who write to the agent on a channel with access = "pairing" get a code and show up here.',columns:[{title:"Person",cell:i=>o(
g,{children:[i.name&&o(g,{children:[o("strong",{children:o(E,{of:i.name})}),o("br",{})]}),o("span",{class:"aside",children:o(E,{of:i.person})})]})},{title:"Stat\
e",cell:i=>o(B,{look:i.state==="asks"?"warn":"good",children:If[i.state]??i.state})},{title:"Linked with",cell:i=>i.linked?.map(a=>o("div",{children:o(E,{of:a})},
a))},{title:"Code",cell:i=>i.code&&o("code",{children:i.code})},{title:"Since",cell:i=>o(T,{at:i.at})},{title:"Actions",cell:i=>o(_,{look:"danger",onPress:()=>s.
ask(i),label:(i.state==="asks"?"Refuse ":"Revoke ")+Bt(i),children:i.state==="asks"?"Refuse…":"Revoke…"})}]}),o(Jf,{}),o(zf,{}),o(ca,{outcome:t}),s.dialog]})}
function Bt(e){return v(e.name||e.person)}function Lf({admit:e,outcome:t}){let[n,r]=b(""),s=async()=>{await e(n.trim()),r("")};return o("form",{class:"filters",
onSubmit:i=>{i.preventDefault(),n.trim()&&s().catch(t.fail)},children:[o("label",{children:["Code that the person got from the agent",o("input",{value:n,autocomplete:"\
off",spellcheck:!1,onInput:i=>r(i.currentTarget.value)})]}),o(_,{look:"main",disabled:!n.trim(),onPress:s,onError:t.fail,children:"Give access"})]})}var Rf={owners:"\
owner",approvers:"approver",allow_from:"has access"};function Jf(){let e=L(t=>S(["config"],{},t),"");return o(U,{title:"In the configuration",wide:!0,children:o(
ee,{read:e,rows:t=>t.settings.flatMap(Xf),label:"People named in the configuration",id:t=>t.person+" "+t.role,empty:"Nobody is named in the configuration.",columns:[
{title:"Person",cell:t=>o(E,{of:t.person})},{title:"Role",cell:t=>o(B,{look:"good",children:t.role})},{title:"From",cell:t=>o(E,{of:t.from})}]})})}function Xf({
key:e,value:t,from:n}){let[,r,s=""]=/^channels\.(.+)\.([a-z_]+)$/.exec(e)??[],i=Rf[s];return r&&i&&Array.isArray(t)?t.map(a=>({person:`${r}:${String(a)}`,role:i,
from:n})):[]}function zf(){let e=L(t=>S(["chats"],{},t),"");return o(U,{title:"Chats",wide:!0,children:o(ee,{read:e,rows:t=>t.chats,label:"Chats where people ta\
lked to the agent",id:t=>t.address+" "+t.session,empty:"Nobody has talked to the agent yet.",columns:[{title:"Chat",cell:t=>o(g,{children:[t.name&&o(g,{children:[
o("strong",{children:o(E,{of:t.name})}),o("br",{})]}),o("span",{class:"aside",children:o(E,{of:t.address})})]})},{title:"Kind",cell:t=>t.group?"group":"private"},
{title:"Session",cell:t=>o(V,{of:t.session})},{title:"Since",cell:t=>o(T,{at:t.since})},{title:"Messages",cell:t=>o(te,{of:t.address})}]})})}function pa(){let{value:e,error:t,again:n}=L(a=>S(["config"],{},a),"");if(t)return o(I,{error:t,again:n});let r=a=>Uf(e?.settings.find(l=>l.key==="heartbeat."+a)?.
value),[s,i]=[r("every"),r("agent")];return s?o("p",{class:"aside heartbeat",children:["Heartbeat: every ",v(s),", ",o(E,{of:i})," goes through ",o(E,{of:r("fil\
e")})," and tells ",o(E,{of:r("to")}),". ",o(Nf,{agent:i})]}):null}function Nf({agent:e}){let t=z(r=>S(["sessions"],{agent:e,channel:"heartbeat",order:"desc",limit:5},
r),e,60,["turn_complete","turn_error"]),n=t.value?.sessions[0];return t.error?o(g,{children:"Couldn't load the last beat."}):t.value?n?o(g,{children:["Last beat\
: ",o(T,{at:n.updated}),", in ",o(V,{of:n.key})]}):o(g,{children:"No beat yet."}):o(g,{children:"Loading the last beat…"})}function Uf(e){return Array.isArray(
e)?e.join(", "):typeof e=="string"?e:""}function Xr({of:e,done:t,close:n}){let[r,s]=b(""),[i,a]=b(""),[l,c]=b(e?.when??""),[u,d]=b(e?.time_zone??Intl.DateTimeFormat().resolvedOptions().timeZone),[m,h]=b(
e?.text??""),[p]=b(()=>crypto.randomUUID()),[f,k]=b(null),w=ge(),x=async()=>{k(null);let y={when:l.trim(),text:m.trim(),time_zone:u.trim()};e?await Ut(["schedul\
es",e.id],Wf(e,y)):await H(["schedules"],{...y,session:r.trim(),...i.trim()?{person:i.trim()}:{}},p),t()};return o(U,{title:e?"Edit schedule":"New schedule",wide:!0,
box:w,children:o("form",{class:"editor",onSubmit:y=>{y.preventDefault(),x().catch(k)},children:[!e&&o(qf,{session:r,person:i,setSession:s,setPerson:a}),o("label",
{children:["When",o("input",{value:l,required:!0,placeholder:"0 9 * * *",spellcheck:!1,onInput:y=>c(y.currentTarget.value)}),o("span",{class:"aside",children:"F\
or example: in 2h, every 1d, 2030-01-31 09:00, or a cron expression"})]}),o("label",{children:["Time zone",o("input",{value:u,spellcheck:!1,onInput:y=>d(y.currentTarget.
value)})]}),o("label",{class:"long",children:["Message to the agent",o("textarea",{rows:3,required:!0,maxLength:4e3,value:m,onInput:y=>h(y.currentTarget.value)})]}),
o(I,{error:f}),o("div",{class:"after",children:[o(_,{look:"main",disabled:!l.trim()||!m.trim()||!e&&!r.trim(),onPress:x,onError:k,children:"Save"}),o(_,{onPress:n,
children:"Close"})]})]})})}function Wf(e,t){let n={};return t.when!==e.when&&(n.when=t.when),t.text!==e.text&&(n.text=t.text),t.time_zone!==e.time_zone&&(n.time_zone=
t.time_zone),n}function qf({session:e,person:t,setSession:n,setPerson:r}){let s=L(i=>S(["chats"],{},i),"");return o(g,{children:[o("label",{children:["Session",
o("input",{value:e,required:!0,list:"sessions-known",placeholder:"main:telegram:42",spellcheck:!1,onInput:i=>n(i.currentTarget.value)}),o("datalist",{id:"sessio\
ns-known",children:s.value?.chats.map(i=>o("option",{value:i.session,children:i.name??i.address},i.session))})]}),o("label",{children:["On behalf of",o("input",
{value:t,placeholder:"telegram:42",spellcheck:!1,onInput:i=>r(i.currentTarget.value)})]})]})}var Hf={done:"good",failed:"bad",running:"warn"};function fa({of:e,why:t,close:n}){let r=z(s=>S(["schedules",e.id],{limit:20},s),e.id,20,["turn_start","turn_com\
plete","turn_error"]);return o(Pe,{title:"Runs",close:n,children:o(ee,{read:r,rows:s=>s.runs,label:`Turns that the schedule ${e.id} started, newest first`,id:s=>s.
id,empty:"No runs yet.",columns:[{title:"Started",cell:s=>o(T,{at:s.begun})},{title:"Due",cell:s=>s.due?o(T,{at:s.due}):"started manually"},{title:"State",cell:s=>o(
g,{children:[o(B,{look:Hf[s.state],children:s.state})," ",s.code]})},{title:"Turn",cell:s=>t?o(te,{of:s.id}):o("code",{children:s.turn})}]})})}function ma({me:e}){let t=ne(),[n,r]=b(null),s=z(c=>S(["schedules"],{limit:200},c),"",20,["turn_start","turn_complete"]),i=c=>{t.say(c),r(null),s.again()},a={pause:async c=>{
await Ut(["schedules",c.id],{paused:!c.paused}),i(c.paused?"Schedule resumed.":"Schedule paused. It won't catch up on the runs that it misses.")},run:async c=>{
let{id:u}=await H(["schedules",c.id,"run"],{},crypto.randomUUID());i(`Running now as ${u}.`)}},l=re(c=>({title:"Cancel this schedule?",confirm:"Cancel schedule",
text:o(g,{children:["The agent won't get “",v(c.text),"” anymore."]}),act:async()=>{await ie(["schedules",c.id]),i("Schedule canceled.")}}));return o(X,{title:"\
Schedules",done:t,about:e.may.admin?"What the agent does later, once or regularly.":"What the agent does later for you, once or regularly. To change it, ask the\
 agent.",children:[e.may.admin&&n?.what!=="new"&&o("div",{class:"filters",children:o(_,{look:"main",onPress:()=>r({what:"new"}),children:"New schedule"})}),n?.what===
"new"&&o(Xr,{done:()=>i("Schedule created."),close:()=>r(null)}),e.may.admin&&o(pa,{}),o(J,{...s}),s.value&&o(jf,{schedules:s.value.schedules,mayChange:e.may.admin,
change:c=>r({what:"change",of:c}),runs:c=>r({what:"runs",of:c}),pause:a.pause,run:a.run,cancel:l.ask,fail:t.fail}),s.value?.next&&o("p",{class:"none after",children:"\
There are more schedules than these."}),n?.what==="change"&&o(Xr,{of:n.of,done:()=>i("Schedule saved."),close:()=>r(null)},n.of.id),n?.what==="runs"&&o(fa,{of:n.
of,why:e.may.admin,close:()=>r(null)},n.of.id),l.dialog]})}function jf({schedules:e,mayChange:t,change:n,runs:r,pause:s,run:i,cancel:a,fail:l}){return o(Y,{label:"\
Schedules, next due first",rows:e,id:c=>c.id,empty:"Nothing is scheduled. Ask the agent to do something later, such as every morning"+(t?", or create a schedule\
 here.":"."),columns:[{title:"Next",cell:c=>c.next?o(T,{at:c.next}):o(B,{look:"warn",children:c.paused?"paused":"finished"})},{title:"When",cell:c=>o(g,{children:[
o("code",{children:v(c.when)}),o("br",{}),o("span",{class:"aside",children:c.time_zone})]})},{title:"Message",cell:c=>o("span",{class:"saying",children:v(c.text)})},
{title:"For",cell:c=>o(g,{children:[o(E,{of:c.person}),o("br",{}),o(V,{of:c.session})]})},{title:"Actions",cell:c=>o("div",{class:"rowactions",children:[t&&o(_,
{onPress:()=>i(c),onError:l,label:`Run now: ${c.id}`,children:"Run now"}),t&&o(_,{onPress:()=>s(c),onError:l,label:`${c.paused?"Resume":"Pause"}: ${c.id}`,children:c.
paused?"Resume":"Pause"}),t&&o(_,{onPress:()=>n(c),label:`Edit: ${c.id}`,children:"Edit"}),o(_,{onPress:()=>r(c),label:`Runs: ${c.id}`,children:"Runs"}),t&&o(_,
{look:"danger",onPress:()=>a(c),label:`Cancel: ${c.id}`,children:"Cancel…"})]})}]})}var ha=500,Vf=200,Zf={debug:"Everything",info:"Info and above",warn:"Warnings and errors",error:"Errors"};function ga(){let[e,t]=b("info"),[n,r]=b(!1),s=Yf(e,n);
return o(X,{title:"Log",about:"What this server logs about its work. It doesn't contain what people or models said. If there are several servers, each has its o\
wn log.",children:[o("div",{class:"filters",children:[o("label",{children:["Level",o("select",{value:e,onChange:i=>t(i.currentTarget.value),children:Object.entries(
Zf).map(([i,a])=>o("option",{value:i,children:a},i))})]}),o(_,{onPress:()=>r(!n),children:n?"Follow":"Pause"}),o("span",{role:"status",class:"aside",children:n?
"Paused.":s.live?"Following.":s.why?"":"Connecting…"})]}),o(I,{error:s.why&&new Error(s.why)}),o(Y,{label:"Lines of the log, newest first",rows:s.lines,id:i=>String(
i.id),empty:"No lines of this level yet.",columns:[{title:"Time",cell:i=>o(Ve,{at:i.at})},{title:"Level",cell:i=>o(Kf,{of:i.level})},{title:"Message",cell:i=>o(
"span",{class:"name",children:v(i.message)})},{title:"Details",cell:i=>o(Gf,{of:i.fields})}]})]})}function Kf({of:e}){return o(B,{look:e==="ERROR"?"bad":e==="WA\
RN"?"warn":void 0,children:e.toLowerCase()})}function Gf({of:e}){let t=typeof e.turn=="string"?e.turn:void 0,n=Object.entries(e).filter(([,r])=>r!=="").map(([r,
s])=>r+"="+(typeof s=="string"?s:JSON.stringify(s)));return o(g,{children:[o("span",{class:"name aside",children:v(n.join(" "))})," ",o(te,{of:t})]})}function Yf(e,t){
let[n,r]=b([]),[s,i]=b({live:!1,why:""}),a=O([]);return P(()=>{if(t)return;let l=new AbortController,c=!1,u,d=()=>{u=void 0;let[p,f]=[a.current.reverse(),c];a.current=
[],c=!1,r(k=>(f?p:[...p,...k]).slice(0,ha))},h={event:(p,f)=>{p==="reset"?(c=!0,a.current=[]):p==="line"&&(a.current.push(f),a.current.length>ha&&a.current.shift()),
u??=setTimeout(d,Vf)},state:(p,f="")=>i({live:p==="live",why:f})};return nn(oe(["logs","events"],{level:e}),h,l.signal),()=>{l.abort(),clearTimeout(u),a.current=
[],i({live:!1,why:""})}},[e,t]),{lines:n,...s}}function ba(e){return e.map(t=>t.map(Qf).join(",")+`\r
`).join("")}function Qf(e){if(typeof e=="number"||/^\d+(\.\d+)?$/.test(e))return String(e);let t=/^[=+\-@\t\r]/.test(e)?"'"+e:e;return/[",\r\n]/.test(t)?'"'+t.replaceAll(
'"','""')+'"':t}function ka(e,t){let n=URL.createObjectURL(new Blob([t],{type:"text/csv;charset=utf-8"})),r=document.createElement("a");r.href=n,r.download=e,r.
click(),setTimeout(()=>URL.revokeObjectURL(n),1e4)}var zr={day:"Day",model:"Model",person:"Person",agent:"Agent",session:"Session"};function Nr(){return Se(Date.now())}function va(){return Nr().slice(0,8)+"01"}function _a(){
let[e,t]=b(va),[n,r]=b(Nr),[s,i]=b("model"),a=e+" "+n,l=L(c=>S(["usage"],{by:"day",from:e,to:n},c),a);return o(X,{title:"Usage",about:"What models used and cost\
. Days are in UTC.",children:[o("form",{class:"filters",onSubmit:c=>c.preventDefault(),children:[o("label",{children:["From",o("input",{type:"date",value:e,max:n,
onChange:c=>t(c.currentTarget.value||va())})]}),o("label",{children:["To",o("input",{type:"date",value:n,min:e,onChange:c=>r(c.currentTarget.value||Nr())})]})]}),
o(J,{...l}),l.value&&o(g,{children:[o(U,{title:"What's left now",children:o(An,{caps:l.value.caps})}),o(U,{title:"By day",wide:!0,children:[o(em,{days:l.value.usage,
from:e,to:n}),o(ya,{by:"day",sums:l.value.usage,span:a})]}),o(tm,{by:s,choose:i,from:e,to:n}),o("p",{class:"aside",children:["Prices as of ",l.value.prices,"."]})]})]})}
function em({days:e,from:t,to:n}){let r=e.some(h=>h.microdollars>0),s=r?ue:h=>$(h)+" tokens",i=Wt(t,n),a=i.map(h=>e.find(p=>p.key===h)),l=a.map(h=>h?r?h.microdollars:
wa(h):0),c=Math.max(0,...l);if(c===0)return null;let u=h=>{let p=a[h];return p?`${r?ue(p.microdollars)+", ":""}${R(p.calls,"call")}, ${$(wa(p))} tokens`:"nothin\
g"},d=l.indexOf(c),m=`${r?"Cost":"Tokens"} per day from ${t} to ${n}. Highest: ${i[d]}: ${u(d)}. The table below lists all days.`;return o("div",{class:"plot",children:o(
Lr,{label:m,times:i,series:[{name:"",look:"c-main",values:l}],says:s,tells:u})})}var wa=e=>e.input+e.output;function tm({by:e,choose:t,from:n,to:r}){let s=n+" "+
r,i=L(a=>S(["usage"],{by:e,from:n,to:r},a).then(l=>({by:e,sums:l.usage})),e+" "+s);return o(U,{title:"By "+e,wide:!0,children:[o("div",{class:"filters",children:o(
"label",{children:["Group by",o("select",{value:e,onChange:a=>t(a.currentTarget.value),children:Object.keys(zr).filter(a=>a!=="day").map(a=>o("option",{value:a,
children:zr[a].toLowerCase()},a))})]})}),o(J,{...i}),i.value&&i.value.by===e&&o(ya,{by:e,sums:i.value.sums,span:s})]})}function nm(e,t){return e.unpriced===e.calls&&
e.calls>0?"unknown":t(e.microdollars)+(e.unpriced+e.estimated>0?" *":"")}function ya({by:e,sums:t,span:n}){let r=Mo(t.map(c=>c.microdollars)),s=[{title:zr[e],cell:c=>v(
c.key||"(erased)")},{title:"Calls",cell:c=>$(c.calls),number:!0},{title:"Input",cell:c=>$(c.input),number:!0},{title:"Cached",cell:c=>$(c.cached),number:!0},{title:"\
Output",cell:c=>$(c.output),number:!0},{title:"Reasoning",cell:c=>$(c.reasoning),number:!0},{title:"Cost",cell:c=>nm(c,r),number:!0}],i=t.reduce((c,u)=>c+u.unpriced,
0),a=t.reduce((c,u)=>c+u.estimated,0),l=()=>ka(`parley-usage-by-${e}-${n.replace(" ","-to-")}.csv`,rm(e,t));return o(g,{children:[o(Y,{label:`Usage by ${e}; inp\
ut, cached, output and reasoning are tokens`,columns:s,rows:t,id:c=>c.key,empty:"No model calls in this period."}),i>0&&o("p",{class:"aside",children:["* The co\
st of ",R(i,"call")," is unknown. See docs/models.md to set prices."]}),a>0&&o("p",{class:"aside",children:["* The tokens of ",R(a,"call")," are estimates, beca\
use the provider didn't count them."]}),t.length>0&&o("div",{class:"after",children:o(_,{onPress:l,label:`Download CSV: usage by ${e}`,children:"Download CSV"})})]})}
function rm(e,t){return ba([[e,"calls","input_tokens","cached_tokens","output_tokens","reasoning_tokens","dollars","calls_estimated","calls_unpriced"],...t.map(
r=>[r.key,r.calls,r.input,r.cached,r.output,r.reasoning,(r.microdollars/1e6).toFixed(6),r.estimated,r.unpriced])])}function xa({rest:e}){let t=e[0]??"";return o(X,{title:"Why",about:"What happened to a message: who let it in, what ran, what people were asked, and whether the\
 answer was sent. It never shows what anyone said.",children:[o(om,{id:t},t),t&&o(sm,{id:t})]})}function om({id:e}){let[t,n]=b(e),r=()=>Te("why",t.trim());return o(
"form",{class:"filters",onSubmit:s=>{s.preventDefault(),t.trim()&&r()},children:[o("label",{class:"long",children:["Message, session, chat or person",o("input",
{value:t,placeholder:"telegram:42",spellcheck:!1,onInput:s=>n(s.currentTarget.value)})]}),o(_,{look:"main",disabled:!t.trim(),onPress:r,children:"Show"})]})}function sm({
id:e}){let t=L(r=>S(["why",e],{},r).then(s=>({id:e,told:s})),e),n=t.value?.id===e?t.value.told:void 0;return o("div",{"aria-live":"polite",children:[o(J,{value:n,
error:t.error,again:t.again}),n&&n.about!=="message"&&n.messages.length>0&&o("p",{class:"aside",children:["Latest messages of the ",n.about," ",v(n.id),":"]}),n?.
messages.map(r=>o(lm,{of:r},r.message)),n&&n.messages.length===0&&o("p",{class:"none",children:["No messages found for ",v(n.id),"."]}),n?.hints&&n.hints.length>
0&&o("ul",{class:"hints",children:n.hints.map((r,s)=>o("li",{children:o(Vt,{text:r})},s))})]})}var im=new Set(["answered","done"]),am=new Set(["running","waitin\
g","waiting_for_people","sending"]);function lm({of:e}){let t=im.has(e.outcome)?"good":am.has(e.outcome)?"warn":"bad",n="story-"+e.message;return o("article",{class:"\
story","aria-labelledby":n,children:[o("h2",{id:n,children:[o("span",{class:"name",children:v(e.message)})," ",o(B,{look:t,children:e.outcome.replaceAll("_"," ")})]}),
o("p",{class:"aside",children:[e.steps[0]?.at&&o(T,{at:e.steps[0].at}),e.session&&o(g,{children:[" in ",o(V,{of:e.session})]})]}),o("ol",{class:"steps",children:e.
steps.map((r,s)=>o("li",{children:[o("span",{class:"at",children:r.at&&o(Ve,{at:r.at})})," ",o("span",{children:o(Vt,{text:r.text})})]},s))}),o("p",{children:[o(
"strong",{children:o(Vt,{text:e.says})})," ",e.outcome==="waiting_for_people"&&o("a",{href:W("approvals"),children:"See open requests"})]})]})}function Sa(){return[{name:"chat",title:"Chat",group:"Conversations",may:e=>e.may.agent||e.may.own||e.may.read,show:$i},{name:"approvals",title:"Approvals",group:"\
Conversations",may:e=>e.may.approve||e.may.agent,show:Ji,beside:ra},{name:"people",title:"People",group:"Conversations",may:e=>e.may.admin,show:da},{name:"overv\
iew",title:"Overview",group:"Now",may:e=>e.may.read,show:aa},{name:"dead-letters",title:"Dead letters",group:"Now",may:e=>e.may.admin,show:Wi},{name:"schedules",
title:"Schedules",group:"Now",may:e=>e.may.admin||e.may.own,show:ma},{name:"jobs",title:"Jobs",group:"Now",may:e=>e.may.read,show:ji},{name:"agents",title:"Agen\
ts",group:"Setup",may:e=>e.may.read,show:Ii},{name:"mcp",title:"MCP servers",group:"Setup",may:e=>e.may.admin,show:Gi},{name:"nodes",title:"Nodes",group:"Setup",
may:e=>e.may.admin,show:na},{name:"configuration",title:"Configuration",group:"Setup",may:e=>e.may.admin,show:Ui},{name:"memory",title:"Memory",group:"Setup",may:e=>e.
may.admin,show:Qi},{name:"browsers",title:"Browsers",group:"Setup",may:()=>!0,show:zi},{name:"usage",title:"Usage",group:"Records",may:e=>e.may.read,show:_a},{name:"\
audit",title:"Audit",group:"Records",may:e=>e.may.admin,show:Xi},{name:"why",title:"Why",group:"Records",may:e=>e.may.admin,show:xa},{name:"doctor",title:"Docto\
r",group:"Records",may:e=>e.may.admin,show:Hi},{name:"log",title:"Log",group:"Records",may:e=>e.may.admin,show:ga}]}function Ca(){let[e,t]=b({state:"asking"}),[n,r]=b(0);switch(P(()=>{vo(()=>t(s=>s.state==="in"?{state:"out",error:new Error("You've been signed out. Sign in aga\
in.")}:s)),Ao(Do()).then(s=>t(s?{state:"in",me:s}:{state:"out"}),s=>t({state:"out",error:s}))},[n]),P(()=>{let s=()=>{location.hash.startsWith("#code=")&&r(i=>i+
1)};return addEventListener("hashchange",s),()=>removeEventListener("hashchange",s)},[]),e.state){case"asking":return o("main",{class:"signin",children:o(fe,{})});case"\
out":return o(Fo,{error:e.error,onDone:s=>t({state:"in",me:s})},n);case"in":return o(cm,{me:e.me,onSignOut:()=>t({state:"out"})})}}function cm({me:e,onSignOut:t}){
let n=yo(),r=xo(),[s,i]=b(null),a=Sa().filter(u=>u.may(e)),l=a.find(u=>u.name===n.view)??a[0],c=async()=>{await ie(["sign-ins","current"]),t()};return P(()=>{document.
title=l?`${l.title} – Parley`:"Parley"},[l]),o("div",{class:"frame",children:[o("a",{class:"skip",href:"#content",onClick:u=>{u.preventDefault(),document.getElementById(
"content")?.focus()},children:"Skip to content"}),o("header",{class:"top",children:[o(So,{menu:r}),o("strong",{class:"brand",children:"Parley"}),o("span",{class:"\
here","aria-hidden":"true",children:l?.title}),o("span",{class:"who",title:"You're signed in with this name",children:e.name}),o(_,{look:"quiet",onPress:c,onError:i,
children:"Sign out"})]}),o(I,{error:s}),o("div",{class:"below",children:[o(Co,{all:a,view:l,menu:r}),o("main",{id:"content",class:"content",tabIndex:-1,children:l?
o(Ur,{children:o(l.show,{me:e,rest:l.name===n.view?n.rest:[]})},l.name):o("p",{class:"empty",children:"Your token can't see anything here. It needs the agent, o\
wn or read scope."})})]})]})}var Ur=class extends le{componentDidCatch(t){console.error(t),this.setState({error:t})}render(){return this.state.error?o(I,{error:this.
state.error,again:()=>this.setState({error:void 0})}):this.props.children}};var Ea=document.getElementById("page");Ea&&so(o(Ca,{}),Ea);
/*! markdown-it 15.0.3 https://github.com/markdown-it/markdown-it @license MIT */
